/* What is queued: each stream's entries, one after another. */
#include "queue.h"

#include "gmd_assert.h"

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
    GMD_ASSERT(s->head == s->tail, "a stream that is idle has no work");
    GMD_ASSERT(streams.active_count && streams.active[s->active_index] == s,
               "the stream is active");
    stream *last = streams.active[--streams.active_count];
    streams.active[s->active_index] = last;
    last->active_index = s->active_index;
    stream_recycle_unused(s);
}

/* --- entries ----------------------------------------------------------------------------- */

void entry_drop(entry *e)
{
    switch (e->kind) {
    case ENTRY_COPY:
        free(e->move.staged);
        break;
    case ENTRY_KERNEL:
        accesses_drop(&e->accesses);
        break;
    case ENTRY_HOST:
        past_drop(e->host.before);
        break;
    default:
        break;
    }
}

/* A node's work, for a graph to queue: it is not queued yet, so that it is after nothing. */
bool entry_copy(entry *to, const entry *from)
{
    *to = *from;
    if (from->kind == ENTRY_KERNEL && from->accesses.more) {
        size_t bytes = from->accesses.count * sizeof *from->accesses.more;
        to->accesses.more = malloc(bytes);
        if (!to->accesses.more) {
            return false;
        }
        memcpy(to->accesses.more, from->accesses.more, bytes);
    } else if (from->kind == ENTRY_HOST) {
        to->host.before = NULL;
    }
    return true;
}

/* What host code sees when it runs, it knows. The lock is released meanwhile. */
static void run_host(stream *s)
{
    entry e = *entry_at(s, s->head + 1);
    point at = {.on = s, .ticket = s->head + 1, .before = e.host.before};
    s->is_running = true;
    sim_run_host(e.host.function, e.host.callback, e.host.stream, e.host.data);
    s->is_running = false;
    if (at.ticket < s->tail) {
        host_learn(at); /* else when its entry is complete, below: the last one closes the stream */
    }
}

/* What the entry does. */
static void run(stream *s, entry *e)
{
    switch (e->kind) {
    case ENTRY_RECORD:
        event_recorded(e->event, s, s->head, s->end_ns);
        break;
    case ENTRY_KERNEL:
        accesses_carry_out(&e->accesses, s->device);
        break;
    case ENTRY_FILL:
    case ENTRY_COPY:
        copy_complete(e, s->device);
        break;
    default:
        break;
    }
}

void queue_complete_first(stream *s, uint64_t end_ns)
{
    GMD_ASSERT_INTERNAL(s->head < s->tail && !s->is_running, "there is an entry to complete");
    bool is_host = entry_at(s, s->head + 1)->kind == ENTRY_HOST;
    if (is_host && !sim.devices[s->device].error) {
        run_host(s);
    }
    entry e = *entry_at(s, s->head + 1); /* the ring may have grown while a host function ran */
    s->end_ns = end_ns;
    s->head++;
    run(s, &e);
    if (s->head == s->tail) {
        queue_deactivate(s);
        if (is_host && !sim.devices[s->device].error) {
            host_learn((point){.on = s, .ticket = s->head, .before = e.host.before});
        }
    }
    entry_drop(&e);
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
    if (s->capture) {
        return capture_push(s, e);
    }
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
        schedule_eager();
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
        entry_drop(entry_at(s, t));
    }
    s->head = s->tail;
}
