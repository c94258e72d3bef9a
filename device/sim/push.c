#include "push.h"

#include "capture.h"
#include "queue.h"
#include "schedule.h"

bool stream_push(stream *s, entry e)
{
    if (s->capture) {
        return capture_push(s, &e);
    }
    if (!queue_append(s, &e)) {
        return false;
    }
    if (sim.config.schedule == GMD_SIM_EAGER) {
        schedule_eager();
    }
    return true;
}

/* A wait is an entry like others. Where it has nothing to wait for, only its ticket is taken: what
 * is before a stream's work never changes without one. */
bool stream_push_wait(stream *s, stream *on, uint64_t ticket)
{
    if (s->head == s->tail && on->head >= ticket) {
        queue_skip(s);
        return true;
    }
    return stream_push(s, (entry){.kind = ENTRY_WAIT, .wait = {.on = on, .ticket = ticket}});
}
