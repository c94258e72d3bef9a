/* happens_before.h - which work runs after which, in every schedule and not only in the one at
 * hand. False from what queues a wait: the host has no memory. */
#ifndef GMD_SIM_HAPPENS_BEFORE_H
#define GMD_SIM_HAPPENS_BEFORE_H

#include "point.h"

/* Everything queued on `s` from now on runs after `p` in every schedule. */
bool stream_is_after(const stream *s, point p);

/* Makes it so: queues a wait where one is needed. */
bool stream_follow(stream *s, point p);

/* Makes what is queued next on `s` wait for what the default stream's rules demand: mostly nothing,
 * because nothing was queued on the default stream since. */
bool stream_follow_default(stream *s);
static inline bool stream_order_default(stream *s)
{
    const stream *first = sim.devices[s->device].legacy;
    bool is_ordered = s != first && s->saw_default == first->tail;
    return is_ordered || !stream_is_blocking(s) || s->capture || stream_follow_default(s);
}

#endif
