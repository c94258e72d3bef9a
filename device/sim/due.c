#include "due.h"

#include "copies.h"

#include "gmd_assert.h"
#include "gmd_min.h"

#include <stddef.h>

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static const entry *first_entry(const stream *s)
{
    return entry_at(s, s->head + 1);
}

bool can_complete(const stream *s, uint64_t *end_ns)
{
    const entry *e = first_entry(s);
    uint64_t start = gmd_max(s->end_ns, e->queued_ns);
    if (s->is_running) {
        return false;
    }
    if (e->kind != ENTRY_WAIT) {
        *end_ns = add_saturating(start, e->duration_ns);
        return e->kind != ENTRY_WAIT_VALUE || copy_value_holds(e);
    }
    *end_ns = start > e->wait.on->end_ns ? start : e->wait.on->end_ns;
    return e->wait.on->head >= e->wait.ticket;
}

/* --- a binary heap by the end, then by the order of queueing ----------------------------- */

static bool ends_before(const stream *a, const stream *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns
                                  : first_entry(a)->sequence < first_entry(b)->sequence;
}

static void put(uint32_t at, stream *s)
{
    streams.due[at] = s;
    s->due_index = at;
}

static void move_up(uint32_t at)
{
    stream *s = streams.due[at];
    for (; at && ends_before(s, streams.due[(at - 1) / 2]); at = (at - 1) / 2) {
        put(at, streams.due[(at - 1) / 2]);
    }
    put(at, s);
}

static void move_down(uint32_t at)
{
    stream *s = streams.due[at];
    for (uint32_t child; (child = 2 * at + 1) < streams.due_count; at = child) {
        if (child + 1 < streams.due_count &&
            ends_before(streams.due[child + 1], streams.due[child])) {
            child++;
        }
        if (!ends_before(streams.due[child], s)) {
            break;
        }
        put(at, streams.due[child]);
    }
    put(at, s);
}

static void add_due(stream *s, uint64_t end_ns)
{
    s->due_ns = end_ns;
    s->due_place = DUE_IN_ORDER;
    put(streams.due_count, s);
    move_up(streams.due_count++);
}

static void drop_due(stream *s)
{
    uint32_t at = s->due_index;
    stream *last = streams.due[--streams.due_count];
    if (last != s) {
        put(at, last);
        move_up(at);
        move_down(last->due_index);
    }
}

/* --- those that wait for a value --------------------------------------------------------- */

static void add_by_value(stream *s)
{
    s->due_place = DUE_BY_VALUE;
    s->due_index = streams.by_value_count;
    streams.by_value[streams.by_value_count++] = s;
}

static void drop_by_value(const stream *s)
{
    stream *last = streams.by_value[--streams.by_value_count];
    streams.by_value[s->due_index] = last;
    last->due_index = s->due_index;
}

/* The one whose value is there and which ends first. There are few, and a value may change again:
 * all are looked at each time. */
static stream *first_by_value(void)
{
    stream *best = NULL;
    for (uint32_t i = 0; i < streams.by_value_count; i++) {
        stream *s = streams.by_value[i];
        if (can_complete(s, &s->due_ns) && (!best || ends_before(s, best))) {
            best = s;
        }
    }
    return best;
}

/* --- those that wait for another stream -------------------------------------------------- */

/* Tickets are waited for in the order in which they were given, mostly: the place is at the end. */
static void add_waiter(stream *s)
{
    const entry *e = first_entry(s);
    stream *on = e->wait.on, *before = on->last_waiter;
    while (before && first_entry(before)->wait.ticket > e->wait.ticket) {
        before = before->previous_waiter;
    }
    s->due_place = DUE_AFTER_ANOTHER;
    s->previous_waiter = before;
    s->next_waiter = before ? before->next_waiter : on->first_waiter;
    *(before ? &before->next_waiter : &on->first_waiter) = s;
    *(s->next_waiter ? &s->next_waiter->previous_waiter : &on->last_waiter) = s;
}

static void drop_waiter(stream *s, stream *on)
{
    *(s->previous_waiter ? &s->previous_waiter->next_waiter : &on->first_waiter) = s->next_waiter;
    *(s->next_waiter ? &s->next_waiter->previous_waiter : &on->last_waiter) = s->previous_waiter;
}

/* --- where a stream is filed ------------------------------------------------------------- */

void due_drop(stream *s)
{
    switch (s->due_place) {
    case DUE_IN_ORDER:
        drop_due(s);
        break;
    case DUE_BY_VALUE:
        drop_by_value(s);
        break;
    case DUE_AFTER_ANOTHER:
        drop_waiter(s, first_entry(s)->wait.on);
        break;
    case DUE_NOWHERE:
        break;
    }
    s->due_place = DUE_NOWHERE;
}

void due_file(stream *s)
{
    uint64_t end;
    GMD_ASSERT_INTERNAL(s->due_place == DUE_NOWHERE, "a stream is filed once");
    if (first_entry(s)->kind == ENTRY_WAIT_VALUE) {
        add_by_value(s);
    } else if (can_complete(s, &end)) {
        add_due(s, end);
    } else {
        add_waiter(s);
    }
}

void due_note_progress(stream *s)
{
    for (stream *w; (w = s->first_waiter) && first_entry(w)->wait.ticket <= s->head;) {
        due_drop(w);
        due_file(w);
    }
}

/* --- the first --------------------------------------------------------------------------- */

/* What it waited for may have gone on since it was filed: it ends with that. */
static void settle_first(void)
{
    uint64_t end;
    for (stream *s;
         streams.due_count && (s = streams.due[0], can_complete(s, &end)) && s->due_ns != end;) {
        s->due_ns = end;
        move_down(0);
    }
}

stream *due_first(uint64_t *end_ns)
{
    settle_first();
    stream *first = streams.due_count ? streams.due[0] : NULL;
    stream *by_value = first_by_value();
    if (by_value && (!first || ends_before(by_value, first))) {
        first = by_value;
    }
    *end_ns = first ? first->due_ns : 0;
    return first;
}

/* --- validity ---------------------------------------------------------------------------- */

static const char *order_violation(const stream *s)
{
    bool is_there = s->due_index < streams.due_count && streams.due[s->due_index] == s;
    return is_there && (!s->due_index || !ends_before(s, streams.due[(s->due_index - 1) / 2]))
               ? NULL
               : "streams are in the order in which their first entries end";
}

static const char *waiter_violation(const stream *s)
{
    const entry *e = first_entry(s);
    const stream *before = s->previous_waiter;
    bool is_there = e->kind == ENTRY_WAIT && e->wait.ticket > e->wait.on->head &&
                    (before ? before->next_waiter : e->wait.on->first_waiter) == s;
    return is_there && (!before || first_entry(before)->wait.ticket <= e->wait.ticket)
               ? NULL
               : "a stream knows who waits for it, in the order of the tickets";
}

const char *due_violation(const stream *s)
{
    bool has_first = s->head != s->tail && !s->is_running;
    if (has_first != (s->due_place != DUE_NOWHERE)) {
        return "a stream whose first entry does not run is filed by when that ends";
    }
    if (s->due_place == DUE_IN_ORDER) {
        return order_violation(s);
    }
    if (s->due_place == DUE_AFTER_ANOTHER) {
        return waiter_violation(s);
    }
    return s->due_place == DUE_NOWHERE ||
                   (s->due_index < streams.by_value_count && streams.by_value[s->due_index] == s)
               ? NULL
               : "a stream whose first entry waits for a value is listed";
}
