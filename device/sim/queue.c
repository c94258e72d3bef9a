#include "queue.h"

#include "accesses.h"
#include "due.h"
#include "host_functions.h"
#include "point.h"
#include "streams.h"

#include "gmd_assert.h"

#include <stdlib.h>
#include <string.h>

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
        gmd_past_drop(e->host.before);
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

/* --- queues ------------------------------------------------------------------------------ */

/* Not base's growth: the size is a power of two, and entries have other places in a larger ring. */
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

bool queue_append(stream *s, const entry *e)
{
    if (s->tail - s->head == s->ring_size && !grow_ring(s)) {
        return false;
    }
    bool is_first = s->head == s->tail;
    if (is_first) {
        activate(s);
    }
    take_ticket(s);
    entry *last = entry_at(s, s->tail);
    *last = *e;
    last->queued_ns = sim.now_ns;
    last->sequence = ++streams.sequence;
    if (is_first) {
        due_file(s);
    }
    return true;
}

void queue_skip(stream *s)
{
    GMD_ASSERT_INTERNAL(s->head == s->tail, "a stream that passes a ticket over is idle");
    take_ticket(s);
    s->head++;
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

static void drop_work(stream *s)
{
    for (uint64_t t = s->head + 1; t <= s->tail; t++) {
        entry_drop(entry_at(s, t));
    }
    due_drop(s);
    streams.needed_count -= s->need > s->head;
    s->head = s->tail;
    due_note_progress(s);
}

void queues_reset(void)
{
    for (uint32_t i = 0; i < streams.active_count; i++) {
        drop_work(streams.active[i]);
    }
    streams.active_count = 0;
}

void queues_reset_device(int device)
{
    while (sim.running) {
        sim_wait_for_host();
    }
    for (uint32_t i = streams.active_count; i-- > 0;) {
        stream *s = streams.active[i];
        if (s->device == device) {
            drop_work(s);
            queue_deactivate(s);
        }
    }
}
