/* Uses of blocks: which of them must come after which, and what is said where they do not. */
#include "gmd_grow.h"
#include "order_state.h"

#include <stdlib.h>
#include <string.h>

#define MARKS_MOST     64 /* of a block: streams that used it whose work may not be over */
#define INHERITED_MOST 8  /* earlier owners that a block is held against */
#define PENDING_MOST   64 /* owners of memory that was freed too early on one stream */

/* --- findings ---------------------------------------------------------------------------- */

static order_finding *add_finding(order *o, order_kind kind, bool is_certain)
{
    queued_finding *q = calloc(1, sizeof *q);
    if (!q) {
        o->counts.dropped++;
        return NULL;
    }
    *o->last = q;
    o->last = &q->next;
    o->counts.findings++;
    q->finding.kind = kind;
    q->finding.is_certain = is_certain;
    return &q->finding;
}

void order_say_used_after_free(order *o, const stream_clock *s, order_block *b, bool is_certain,
                               const order_work *work)
{
    order_finding *f =
        b->was_said[is_certain] ? NULL : add_finding(o, ORDER_USED_AFTER_FREE, is_certain);
    if (f) {
        b->was_said[is_certain] = true;
        f->block = b->subject;
        f->use = *work;
        f->use_stream = s->name;
        f->is_captured = s->capture != NULL;
    }
}

static void say_not_ordered(order *o, const inherited *from, const use_mark *m,
                            const order_block *b, const use_mark *use)
{
    bool is_certain = m->is_certain && use->is_certain;
    order_kind kind = from->has_memory ? ORDER_REUSED_EARLY : ORDER_FREED_EARLY;
    order_finding *f = from->from->was_said[is_certain] ? NULL : add_finding(o, kind, is_certain);
    if (f) {
        from->from->was_said[is_certain] = true;
        f->is_captured = use->on->capture != NULL;
        f->block = from->from->subject;
        f->use = m->work;
        f->use_stream = m->stream;
        f->taker = b->subject;
        f->taker_use = use->work;
        f->taker_stream = use->stream;
    }
}

/* --- uses -------------------------------------------------------------------------------- */

/* Work within a graph and work outside have no order that is known here. */
static bool is_ordered(const stream_clock *s, const use_mark *m)
{
    return use_mark_is_over(m) || m->on->capture != s->capture ||
           stream_clock_is_after(s, m->on, m->ticket);
}

/* The first use of a block by a stream is the one that must be ordered: later ones run after it. */
static void judge_first_use(order *o, const order_block *b, const use_mark *use)
{
    if (!b->inherited_count) {
        return;
    }
    if (!stream_clock_order_default(&o->clocks, use->on)) {
        o->counts.dropped++;
        return;
    }
    for (uint32_t i = 0; i < b->inherited_count; i++) {
        const inherited *from = &b->inherited[i];
        for (uint32_t k = 0; k < from->from->count; k++) {
            const use_mark *m = &from->from->marks[k];
            bool counts = from->has_memory || !stream_is_same(m->stream, b->subject.stream);
            if (counts && !is_ordered(use->on, m)) {
                say_not_ordered(o, from, m, b, use);
            }
        }
    }
}

static use_mark *marks_of(order_block *b)
{
    return b->marks ? b->marks : b->own_marks;
}

static void drop_marks_that_are_over(order_block *b)
{
    use_mark *marks = marks_of(b);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->mark_count; i++) {
        if (!use_mark_is_over(&marks[i])) {
            marks[kept++] = marks[i];
        }
    }
    b->mark_count = kept;
}

static bool make_room_for_mark(order_block *b)
{
    uint32_t capacity = b->marks ? b->mark_capacity : MARKS_INLINE;
    if (b->mark_count < capacity) {
        return true;
    }
    drop_marks_that_are_over(b);
    if (b->mark_count < capacity) {
        return true;
    }
    bool is_inline = !b->marks;
    if (b->mark_count >= MARKS_MOST || !GMD_GROW(&b->marks, &b->mark_capacity, b->mark_count + 1)) {
        return false;
    }
    if (is_inline) {
        memcpy(b->marks, b->own_marks, sizeof b->own_marks);
    }
    return true;
}

void order_use_block(order *o, stream_clock *s, order_block *b, bool is_certain,
                     const order_work *work)
{
    use_mark *marks = marks_of(b);
    for (uint32_t i = 0; i < b->mark_count; i++) {
        if (use_mark_is_on(&marks[i], s) && marks[i].is_certain == is_certain) {
            marks[i].ticket = s->tail;
            marks[i].work = *work;
            return;
        }
    }
    use_mark use = {.on = s,
                    .epoch = s->epoch,
                    .ticket = s->tail,
                    .stream = s->name,
                    .work = *work,
                    .is_certain = is_certain};
    judge_first_use(o, b, &use);
    if (!make_room_for_mark(b)) {
        o->counts.dropped++;
        return;
    }
    marks_of(b)[b->mark_count++] = use;
}

/* --- allocation -------------------------------------------------------------------------- */

stream_clock *order_clock_of_block(order *o, const order_block *b)
{
    stream_clock *s = stream_clocks_get(&o->clocks, b->subject.stream);
    if (!b->capture) {
        return s;
    }
    return s && s->captured && s->captured->capture->number == b->capture ? s->captured : NULL;
}

static void inherit(order *o, order_block *b, earlier_owner *from, bool has_memory)
{
    if (!b->inherited) {
        b->inherited = malloc(INHERITED_MOST * sizeof b->inherited[0]);
    }
    if (!b->inherited || b->inherited_count == INHERITED_MOST) {
        o->counts.dropped++;
        return;
    }
    b->inherited[b->inherited_count++] =
        (inherited){.from = earlier_owner_keep(from), .has_memory = has_memory};
}

/* Whether somebody who is given memory by `s` now could be given that of `e` before its work. */
static bool is_pending(const stream_clock *s, const earlier_owner *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        if (!is_ordered(s, &e->marks[i])) {
            return true;
        }
    }
    return false;
}

static void drop_ordered(stream_clock *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->pending_count; i++) {
        if (is_pending(s, s->pending[i])) {
            s->pending[kept++] = s->pending[i];
        } else {
            earlier_owner_drop(s->pending[i]);
        }
    }
    s->pending_count = kept;
}

void order_inherit(order *o, order_block *b)
{
    uint64_t from = b->subject.address, end = from + b->subject.bytes;
    for (earlier_owner *e; (e = earlier_owners_take(&o->earlier, &from, end)) != NULL;) {
        inherit(o, b, e, true);
        earlier_owner_drop(e);
    }
    stream_clock *s = order_clock_of_block(o, b);
    if (!s || !s->pending_count || !stream_clock_order_default(&o->clocks, s)) {
        return;
    }
    drop_ordered(s);
    for (uint32_t i = s->pending_count; i-- > 0 && b->inherited_count < INHERITED_MOST;) {
        inherit(o, b, s->pending[i], false); /* the latest first */
    }
}

/* --- free -------------------------------------------------------------------------------- */

static bool is_recorded(const order_block *b, order_stream stream)
{
    for (uint32_t i = 0; i < b->recorded_count; i++) {
        if (stream_is_same(b->recorded[i], stream)) {
            return true;
        }
    }
    return false;
}

/* Freed before it is safe: the next to be given memory on the stream are looked at. */
static void await_taker(order *o, stream_clock *s, earlier_owner *e)
{
    if (s->pending_count == PENDING_MOST) {
        earlier_owner_drop(s->pending[0]);
        memmove(s->pending, s->pending + 1, (PENDING_MOST - 1) * sizeof s->pending[0]);
        s->pending_count--;
        o->counts.dropped++;
    }
    if (!GMD_GROW(&s->pending, &s->pending_capacity, s->pending_count + 1)) {
        o->counts.dropped++;
        return;
    }
    s->pending[s->pending_count++] = earlier_owner_keep(e);
}

static void note_memory(order *o, earlier_owner *e)
{
    if (!earlier_owners_add(&o->earlier, e)) {
        o->counts.dropped++;
    }
}

void order_free_block(order *o, order_block *b)
{
    stream_clock *s = order_clock_of_block(o, b);
    if (!s || !stream_clock_order_default(&o->clocks, s)) {
        return;
    }
    const use_mark *marks = marks_of(b);
    earlier_owner *e = earlier_owner_create(&b->subject, b->mark_count);
    if (!e) {
        o->counts.dropped++;
        return;
    }
    for (uint32_t i = 0; i < b->mark_count; i++) {
        if (!use_mark_is_over(&marks[i]) && !is_recorded(b, marks[i].stream)) {
            e->marks[e->count++] = marks[i];
        }
    }
    if (e->count) {
        note_memory(o, e);
        if (is_pending(s, e)) {
            await_taker(o, s, e);
        }
    }
    earlier_owner_drop(e);
}

/* --- the end ----------------------------------------------------------------------------- */

void order_forget_block(order *o, order_block *b)
{
    for (uint32_t i = 0; i < b->inherited_count; i++) {
        earlier_owner_drop(b->inherited[i].from);
    }
    free(b->inherited);
    free(b->recorded);
    free(b->marks);
    free(b);
    atomic_fetch_sub(&o->live_blocks, 1);
}

void order_drop_block(order *o, order_block *b)
{
    if (b && atomic_fetch_sub(&b->references, 1) == 1) {
        order_forget_block(o, b);
    }
}
