/* What is queued: each stream's entries, one after another, and the default stream's order. */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

static bool grow_ring(stream *s)
{
    uint64_t size = s->ring_size ? s->ring_size * 2 : 16;
    entry *ring = malloc(size * sizeof *ring);
    if (!ring) {
        return false;
    }
    for (uint64_t t = s->head + 1; t <= s->tail; t++) {
        ring[(t - 1) & (size - 1)] = *entry_at(s, t);
    }
    free(s->ring);
    s->ring = ring;
    s->ring_size = size;
    return true;
}

static void activate(stream *s)
{
    s->active_index = streams.active_count;
    streams.active[streams.active_count++] = s;
}

void queue_deactivate(stream *s)
{
    stream *last = streams.active[--streams.active_count];
    streams.active[s->active_index] = last;
    last->active_index = s->active_index;
    stream_recycle_unused(s);
}

/* --- entries ----------------------------------------------------------------------------- */

void entry_drop(entry *e)
{
    if (e->kind == ENTRY_COPY) {
        free(e->move.staged);
    } else if (e->kind == ENTRY_KERNEL && e->count > ACCESSES_INLINE) {
        free(e->accesses);
    }
}

bool entry_copy(entry *to, const entry *from)
{
    *to = *from;
    if (from->kind == ENTRY_KERNEL && from->count > ACCESSES_INLINE) {
        size_t bytes = from->count * sizeof *from->accesses;
        to->accesses = malloc(bytes);
        if (!to->accesses) {
            return false;
        }
        memcpy(to->accesses, from->accesses, bytes);
    }
    return true;
}

/* Every range that a kernel touches is there when it runs. */
static bool can_touch_all(const entry *e, int device)
{
    for (uint32_t i = 0; i < e->count; i++) {
        bool is_listed = e->count > ACCESSES_INLINE;
        uint64_t address = is_listed ? e->accesses[i].address : e->access[i].address;
        uint64_t size = is_listed ? e->accesses[i].size : e->access[i].size;
        if (!memory_is_usable(address, size, device)) {
            return false;
        }
    }
    return true;
}

/* A host function sees what its stream did before it. The lock is released meanwhile. */
static void run_host(stream *s)
{
    entry e = *entry_at(s, s->head + 1);
    uint64_t ticket = s->head + 1;
    s->is_running = true;
    sim_run_host(e.host.function, e.host.callback, e.host.stream, e.host.data);
    s->is_running = false;
    host_join_at(s, ticket);
}

/* What the entry does; a broken context does nothing any more. */
static void run(stream *s, entry *e)
{
    if (sim.devices[s->device].broken) {
        return;
    }
    switch (e->kind) {
    case ENTRY_FILL:
    case ENTRY_COPY:
        copy_complete(e, s->device);
        break;
    case ENTRY_KERNEL:
        if (!can_touch_all(e, s->device)) {
            device_break(s->device, cudaErrorIllegalAddress,
                         "a kernel ran that touches memory that is not allocated");
        }
        break;
    default:
        break;
    }
}

void queue_complete_first(stream *s, uint64_t end_ns)
{
    if (entry_at(s, s->head + 1)->kind == ENTRY_HOST && !sim.devices[s->device].broken) {
        run_host(s);
    }
    entry *e = entry_at(s, s->head + 1); /* the ring may have grown while a host function ran */
    s->end_ns = end_ns;
    s->head++;
    if (e->kind == ENTRY_RECORD) {
        event_recorded(e->event, s, s->head, end_ns);
    } else {
        run(s, e);
        entry_drop(e);
    }
    if (s->head == s->tail) {
        queue_deactivate(s);
    }
}

bool queue_can_complete(const stream *s, uint64_t *end_ns)
{
    const entry *e = entry_at(s, s->head + 1);
    uint64_t start = s->end_ns > e->queued_ns ? s->end_ns : e->queued_ns;
    if (s->is_running) {
        return false;
    }
    if (e->kind == ENTRY_WAIT) {
        *end_ns = start > e->wait.on->end_ns ? start : e->wait.on->end_ns;
        return e->wait.on->head >= e->wait.ticket;
    }
    if (__builtin_add_overflow(start, e->duration_ns, end_ns)) {
        *end_ns = UINT64_MAX;
    }
    return e->kind != ENTRY_WAIT_VALUE || copy_value_holds(e);
}

/* --- queueing ---------------------------------------------------------------------------- */

bool stream_push(stream *s, entry e)
{
    if (s->capture) {
        return capture_push(s, e);
    }
    if (s->tail - s->head == s->ring_size && !grow_ring(s)) {
        entry_drop(&e);
        return false;
    }
    e.queued_ns = sim.now_ns;
    e.sequence = ++streams.sequence;
    if (s->head == s->tail) {
        activate(s);
    }
    *entry_at(s, ++s->tail) = e;
    s->changes++;
    stream_mark_ahead(s);
    if (sim.config.schedule == GMD_SIM_EAGER) {
        schedule_eager();
    }
    return true;
}

bool queue_push_wait(stream *s, point p)
{
    return stream_push(s, (entry){.kind = ENTRY_WAIT, .wait = p});
}

/* What is queued next on `s` runs after all that is queued on `other` now. */
static bool order_after(stream *s, stream *other)
{
    return stream_join(s, stream_point(other), stream_clock(other)) &&
           (other->head == other->tail || queue_push_wait(s, stream_point(other)));
}

/* Work on the default stream starts after all earlier work of the device's blocking streams... */
static bool order_default_after_all(stream *s)
{
    for (uint32_t i = 0; i < streams.ahead_count; i++) {
        stream *other = streams.ahead[i];
        if (other != s && other->device == s->device && stream_is_blocking(other) &&
            other->seen_by_default != other->changes) {
            if (!order_after(s, other)) {
                return false;
            }
            other->seen_by_default = other->changes;
        }
    }
    return true;
}

/* ... and work on those starts after all earlier work of the default stream. */
bool stream_order_default(stream *s)
{
    if (streams.ahead_count == 0 || !stream_is_blocking(s) || s->capture) {
        return true;
    }
    if (stream_is_legacy(s)) {
        return order_default_after_all(s);
    }
    stream *first = sim.devices[s->device].legacy;
    if (!first->is_ahead || s->saw_default == first->changes) {
        return true;
    }
    s->saw_default = first->changes;
    return order_after(s, first);
}

uint64_t stream_pending(const stream *s)
{
    return s->tail - s->head;
}

void queue_drop(stream *s)
{
    for (uint64_t t = s->head + 1; t <= s->tail; t++) {
        entry_drop(entry_at(s, t));
    }
    s->head = s->tail;
}
