/* What is queued: each stream's entries, one after another, and the default stream's order. */
#include "queue.h"

#include <stdlib.h>

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
    if (s->is_destroyed) {
        stream_recycle(s);
    }
}

void queue_complete_first(stream *s, uint64_t end_ns)
{
    entry *e = entry_at(s, s->head + 1);
    s->end_ns = end_ns;
    s->head++;
    if (e->kind == ENTRY_RECORD) {
        event_recorded(e->event, s, s->head, end_ns);
    } else if (e->kind != ENTRY_WAIT) {
        copy_complete(e);
    }
    if (s->head == s->tail) {
        queue_deactivate(s);
    }
}

bool stream_push(stream *s, entry e)
{
    if (s->tail - s->head == s->ring_size && !grow_ring(s)) {
        return false;
    }
    e.queued_ns = sim.now_ns;
    e.sequence = ++streams.sequence;
    if (s->head == s->tail) {
        activate(s);
    }
    *entry_at(s, ++s->tail) = e;
    if (sim.config.schedule == GMD_SIM_EAGER) {
        /* Nothing is ever pending here, so neither is what it waits for. */
        queue_complete_first(s, sim.now_ns);
    }
    return true;
}

static bool push_wait(stream *s, stream *on, uint64_t ticket)
{
    return stream_push(s, (entry){.kind = ENTRY_WAIT, .wait = {.on = on, .ticket = ticket}});
}

bool stream_follow(stream *s, point p)
{
    return !p.on || p.on == s || p.on->head >= p.ticket || push_wait(s, p.on, p.ticket);
}

/* Work on the default stream starts after all earlier work of the device's blocking streams... */
static bool order_default_after_all(stream *s)
{
    for (uint32_t i = 0; i < streams.active_count; i++) {
        stream *other = streams.active[i];
        if (other != s && other->device == s->device && stream_is_blocking(other) &&
            other->seen_by_default < other->tail) {
            if (!push_wait(s, other, other->tail)) {
                return false;
            }
            other->seen_by_default = other->tail;
        }
    }
    return true;
}

/* ... and work on those starts after all earlier work of the default stream. */
bool stream_order_default(stream *s)
{
    if (streams.active_count == 0 || !stream_is_blocking(s)) {
        return true;
    }
    if (stream_is_legacy(s)) {
        return order_default_after_all(s);
    }
    stream *first = sim.devices[s->device].legacy;
    if (first->head == first->tail || s->saw_default == first->tail) {
        return true;
    }
    s->saw_default = first->tail;
    return push_wait(s, first, first->tail);
}

uint64_t stream_pending(const stream *s)
{
    return s->tail - s->head;
}

void queue_drop(stream *s)
{
    for (uint64_t t = s->head + 1; t <= s->tail; t++) {
        copy_drop(entry_at(s, t));
    }
    s->head = s->tail;
}
