#include "completion.h"

#include "accesses.h"
#include "copies.h"
#include "due.h"
#include "events.h"
#include "host_clock.h"
#include "host_functions.h"
#include "queue.h"

#include "gmd_assert.h"

/* What host code sees when it runs, it knows. The lock is released meanwhile. */
static void run_host(stream *s)
{
    entry e = *entry_at(s, s->head + 1);
    point at = {.on = s, .ticket = s->head + 1, .before = e.host.before};
    s->is_running = true;
    due_drop(s);
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

void complete_first(stream *s, uint64_t end_ns)
{
    GMD_ASSERT_INTERNAL(s->head < s->tail && !s->is_running, "there is an entry to complete");
    bool is_host = entry_at(s, s->head + 1)->kind == ENTRY_HOST;
    if (is_host && !sim.devices[s->device].error) {
        run_host(s);
    }
    entry e = *entry_at(s, s->head + 1); /* the ring may have grown while a host function ran */
    due_drop(s);
    s->end_ns = end_ns;
    s->head++;
    streams.needed_count -= s->need == s->head;
    due_note_progress(s);
    run(s, &e);
    if (s->head < s->tail) {
        due_file(s);
    } else {
        queue_deactivate(s);
        if (is_host && !sim.devices[s->device].error) {
            host_learn((point){.on = s, .ticket = s->head, .before = e.host.before});
        }
    }
    entry_drop(&e);
}
