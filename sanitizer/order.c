/* The functions of order.h: one lock around each, and findings delivered behind it. */
#include "order.h"

#include "gmd_grow.h"
#include "order_state.h"

#include <stdlib.h>

#define RECORDED_MOST 64 /* streams recorded for one block */

order *order_create(const order_settings *settings)
{
    order *o = calloc(1, sizeof *o);
    if (!o) {
        return NULL;
    }
    o->settings = *settings;
    o->last = &o->first;
    if (pthread_mutex_init(&o->lock, NULL)) {
        free(o);
        return NULL;
    }
    return o;
}

static void free_findings(queued_finding *first)
{
    while (first) {
        queued_finding *next = first->next;
        free(first);
        first = next;
    }
}

void order_destroy(order *o)
{
    if (!o) {
        return;
    }
    order_graphs_free(o);
    for (uint32_t i = 0; i < o->events.capacity; i++) {
        recorded_event *e = o->events.rows[i].value;
        if (o->events.rows[i].key) {
            gmd_past_drop(e->at.before);
            free(e);
        }
    }
    handle_table_free(&o->events);
    for (uint32_t i = 0; i < o->clocks.count; i++) {
        stream_clock *s = o->clocks.all[i];
        while (s->pending_count) {
            earlier_owner_drop(s->pending[--s->pending_count]);
        }
    }
    earlier_owners_free(&o->earlier);
    stream_clocks_free(&o->clocks);
    free_findings(o->first);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

/* --- the lock ---------------------------------------------------------------------------- */

static void enter(order *o)
{
    pthread_mutex_lock(&o->lock);
}

static void leave(order *o)
{
    queued_finding *first = o->first;
    o->first = NULL;
    o->last = &o->first;
    pthread_mutex_unlock(&o->lock);
    for (const queued_finding *q = first; q && o->settings.found; q = q->next) {
        o->settings.found(o->settings.context, &q->finding);
    }
    free_findings(first);
}

static void count_dropped(order *o, bool was_kept)
{
    o->counts.dropped += !was_kept;
}

/* The clock of a stream as it is now: within a capture, that of its part of the capture. */
static stream_clock *clock_now(order *o, order_stream stream)
{
    stream_clock *s = stream_clocks_get(&o->clocks, stream);
    count_dropped(o, s != NULL);
    return s && s->captured ? s->captured : s;
}

void order_statistics_of(order *o, order_statistics *out)
{
    enter(o);
    *out = o->counts;
    out->live_blocks = atomic_load(&o->live_blocks);
    out->streams = o->clocks.count;
    leave(o);
}

/* --- blocks ------------------------------------------------------------------------------ */

static void widen_span(order *o, uint64_t from, uint64_t end)
{
    uint64_t beyond = atomic_load_explicit(&o->beyond, memory_order_relaxed);
    if (!beyond || from < atomic_load_explicit(&o->lowest, memory_order_relaxed)) {
        atomic_store_explicit(&o->lowest, from, memory_order_relaxed);
    }
    if (end > beyond) {
        atomic_store_explicit(&o->beyond, end, memory_order_relaxed);
    }
}

void order_span(const order *o, uint64_t *lowest, uint64_t *beyond)
{
    *lowest = atomic_load_explicit(&o->lowest, memory_order_relaxed);
    *beyond = atomic_load_explicit(&o->beyond, memory_order_relaxed);
}

order_block *order_allocated(order *o, uint64_t address, uint64_t bytes, order_stream stream,
                             uint64_t place, bool is_in_graph_pool)
{
    order_block *b = calloc(1, sizeof *b);
    enter(o);
    if (b) {
        atomic_init(&b->references, 1);
        atomic_fetch_add(&o->live_blocks, 1);
        b->subject = (order_subject){.address = address,
                                     .bytes = bytes,
                                     .stream = stream,
                                     .allocated_at = place,
                                     .serial = ++o->counts.blocks};
        widen_span(o, address, address + bytes);
        const stream_clock *s = clock_now(o, stream);
        b->capture = s && s->capture ? s->capture->number : 0;
        b->is_in_graph_pool = is_in_graph_pool || b->capture;
        order_inherit(o, b);
    }
    count_dropped(o, b != NULL);
    leave(o);
    return b;
}

void order_record_stream(order *o, order_block *block, order_stream stream)
{
    if (!block) {
        return;
    }
    enter(o);
    uint32_t i = 0;
    while (i < block->recorded_count && !stream_is_same(block->recorded[i], stream)) {
        i++;
    }
    if (i == block->recorded_count && i < RECORDED_MOST &&
        GMD_GROW(&block->recorded, &block->recorded_capacity, i + 1)) {
        block->recorded[block->recorded_count++] = stream;
    }
    count_dropped(o, i < block->recorded_count);
    leave(o);
}

void order_freed(order *o, order_block *block, uint64_t place)
{
    if (!block) {
        return;
    }
    enter(o);
    if (!block->is_freed) {
        block->is_freed = true;
        block->subject.freed_at = place;
        order_free_block(o, block);
    }
    leave(o);
}

order_block *order_block_keep(order_block *block)
{
    return order_keep_block(block);
}

void order_block_drop(order *o, order_block *block)
{
    if (block && atomic_fetch_sub(&block->references, 1) == 1) {
        enter(o);
        order_forget_block(o, block);
        leave(o);
    }
}

static bool is_foreign(const order_block *block, order_stream stream)
{
    return !stream_is_same(block->subject.stream, stream);
}

bool order_is_remarkable(const order_block *block, order_stream stream)
{
    return block && (atomic_load(&block->is_freed) || is_foreign(block, stream));
}

bool order_describe(order *o, const order_block *block, order_subject *out)
{
    enter(o);
    *out = block->subject;
    bool is_freed = block->is_freed;
    leave(o);
    return is_freed;
}

bool order_is_capturing(const order *o)
{
    return atomic_load(&o->captures_now) > 0;
}

/* --- work -------------------------------------------------------------------------------- */

static void use_one(order *o, stream_clock *s, const order_use *use, const order_work *work)
{
    order_block *b = use->block;
    o->counts.uses++;
    o->counts.foreign_uses += is_foreign(b, s->name);
    if (b->is_freed) {
        order_say_used_after_free(o, s, b, use->is_certain, work);
    } else if (!s->capture || b->capture == s->capture->number) {
        order_use_block(o, s, b, use->is_certain, work);
    } else if (!b->is_in_graph_pool) {
        order_capture_use(o, s->capture, b, use->is_certain, work->what);
    }
}

void order_queued(order *o, order_stream stream, const char *what, uint64_t place,
                  const order_use *uses, size_t count)
{
    enter(o);
    stream_clock *s = clock_now(o, stream);
    if (s) {
        order_work work = {.what = what, .place = place, .number = ++o->counts.works};
        count_dropped(o, stream_clock_push(&o->clocks, s));
        for (size_t i = 0; i < count; i++) {
            if (uses[i].block) {
                use_one(o, s, &uses[i], &work);
            }
        }
    }
    leave(o);
}

/* --- who waits for whom ------------------------------------------------------------------ */

void order_stream_created(order *o, order_stream stream, bool is_blocking)
{
    enter(o);
    count_dropped(o, stream_clocks_create(&o->clocks, stream, is_blocking) != NULL);
    leave(o);
}

bool order_knows_stream(order *o, order_stream stream)
{
    enter(o);
    bool is_known = stream_clocks_find(&o->clocks, stream) != NULL;
    leave(o);
    return is_known;
}

void order_stream_destroyed(order *o, order_stream stream)
{
    enter(o);
    order_end_capture(o, stream, 0);
    stream_clocks_destroy(&o->clocks, stream);
    leave(o);
}

static recorded_event *get_event(order *o, uint64_t event)
{
    recorded_event *e = handle_table_get(&o->events, event);
    if (!e) {
        e = calloc(1, sizeof *e);
        if (e && !handle_table_set(&o->events, event, e)) {
            free(e);
            e = NULL;
        }
    }
    return e;
}

void order_event_recorded(order *o, uint64_t event, order_stream stream)
{
    enter(o);
    stream_clock *s = clock_now(o, stream);
    recorded_event *e = s ? get_event(o, event) : NULL;
    count_dropped(o, e != NULL);
    if (e) {
        count_dropped(o, stream_clock_push(&o->clocks, s));
        gmd_past_drop(e->at.before);
        e->at = stream_clock_point(s);
        gmd_past_keep(e->at.before);
        e->epoch = s->epoch;
    }
    leave(o);
}

/* Where an event stands; on nothing: it was never recorded, or belongs to a capture that is over.
 */
static clock_point point_of(const order *o, uint64_t event)
{
    const recorded_event *e = handle_table_get(&o->events, event);
    bool is_there = e && e->at.on && (!e->at.on->capture || e->epoch == e->at.on->epoch);
    return is_there ? e->at : (clock_point){NULL, 0, NULL};
}

void order_event_waited_for(order *o, uint64_t event, order_stream stream)
{
    enter(o);
    clock_point at = point_of(o, event);
    stream_clock *s = at.on ? stream_clocks_get(&o->clocks, stream) : NULL;
    if (s && at.on->capture && !at.on->is_gone) {
        s = order_capture_join(o, at.on->capture, s);
    } else if (s && s->captured) {
        s = NULL; /* a graph does not wait for what is outside */
    }
    if (s && at.on->capture == s->capture) {
        count_dropped(o, stream_clock_follow(s, at));
        count_dropped(o, stream_clock_push(&o->clocks, s));
    }
    leave(o);
}

void order_event_destroyed(order *o, uint64_t event)
{
    enter(o);
    recorded_event *e = handle_table_remove(&o->events, event);
    if (e) {
        gmd_past_drop(e->at.before);
        free(e);
    }
    leave(o);
}

void order_event_over(order *o, uint64_t event)
{
    enter(o);
    clock_point at = point_of(o, event);
    if (at.on && !at.on->capture) {
        stream_clocks_learn(at);
    }
    leave(o);
}

void order_stream_over(order *o, order_stream stream)
{
    enter(o);
    stream_clock *s = stream_clocks_find(&o->clocks, stream);
    if (s) {
        if (stream_key(stream) == stream_key((order_stream){.device = stream.device})) {
            count_dropped(o, stream_clock_order_default(&o->clocks, s));
        }
        stream_clocks_learn(stream_clock_point(s));
    }
    leave(o);
}

void order_device_over(order *o, int device)
{
    enter(o);
    stream_clocks_learn_device(&o->clocks, device);
    leave(o);
}

/* --- graphs ------------------------------------------------------------------------------ */

void order_capture_begun(order *o, order_stream stream)
{
    enter(o);
    order_begin_capture(o, stream);
    leave(o);
}

void order_capture_ended(order *o, order_stream stream, uint64_t graph)
{
    enter(o);
    order_end_capture(o, stream, graph);
    leave(o);
}

void order_graph_instantiated(order *o, uint64_t graph, uint64_t exec)
{
    enter(o);
    order_instantiate(o, graph, exec);
    leave(o);
}

void order_graph_destroyed(order *o, uint64_t graph)
{
    enter(o);
    order_drop_graph(o, graph);
    leave(o);
}

void order_exec_destroyed(order *o, uint64_t exec)
{
    enter(o);
    order_drop_exec(o, exec);
    leave(o);
}

void order_graph_launched(order *o, uint64_t exec, order_stream stream, uint64_t place)
{
    enter(o);
    stream_clock *s = stream_clocks_get(&o->clocks, stream);
    if (s && !s->captured) {
        o->counts.works++;
        count_dropped(o, stream_clock_push(&o->clocks, s));
        order_launch_graph(o, exec, s, place);
    }
    leave(o);
}
