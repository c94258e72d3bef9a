/* What is queued: each stream's entries, one after another. */
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
    stream_recycle_unused(s);
}

void queue_complete_first(stream *s, uint64_t end_ns)
{
    entry *e = entry_at(s, s->head + 1);
    s->end_ns = end_ns;
    s->head++;
    if (e->kind == ENTRY_RECORD) {
        event_recorded(e->event, s, s->head, end_ns);
    } else if (e->kind == ENTRY_KERNEL) {
        accesses_carry_out(&e->accesses, s->device);
    } else if (e->kind != ENTRY_WAIT) {
        copy_complete(e, s->device);
    }
    if (s->head == s->tail) {
        queue_deactivate(s);
    }
}

static void take_ticket(stream *s)
{
    s->tail++;
    if (!s->is_open) {
        stream_open(s);
    }
    if (stream_is_blocking(s) && !stream_is_legacy(s)) {
        sim.devices[s->device].blocking_entries++;
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
    take_ticket(s);
    *entry_at(s, s->tail) = e;
    if (sim.config.schedule == GMD_SIM_EAGER) {
        /* Nothing is ever pending here, so neither is what it waits for. */
        queue_complete_first(s, sim.now_ns);
    }
    return true;
}

/* A wait is an entry like others. Where it has nothing to wait for, only its ticket is taken: what
 * is before a stream's work never changes without one. */
bool queue_wait(stream *s, stream *on, uint64_t ticket)
{
    if (s->head == s->tail && on->head >= ticket) {
        take_ticket(s);
        s->head++;
        return true;
    }
    return stream_push(s, (entry){.kind = ENTRY_WAIT, .wait = {.on = on, .ticket = ticket}});
}

uint64_t stream_pending(const stream *s)
{
    return s->tail - s->head;
}

void queue_drop(stream *s)
{
    for (uint64_t t = s->head + 1; t <= s->tail; t++) {
        entry *e = entry_at(s, t);
        if (e->kind == ENTRY_KERNEL) {
            accesses_drop(&e->accesses);
        } else {
            copy_drop(e);
        }
    }
    s->head = s->tail;
}
