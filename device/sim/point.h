/* point.h - a place in a stream's work, with the past (gmd_past.h) that lies before it. */
#ifndef GMD_SIM_POINT_H
#define GMD_SIM_POINT_H

#include "stream_table.h"

/* A place in a stream's work: all that is queued up to `ticket`. `before` is what lies before it on
 * other streams; it is needed to follow the point or to learn that it is over. */
typedef struct point {
    stream *on; /* NULL: nothing */
    uint64_t ticket;
    gmd_past *before;
} point;

/* For whoever stores a point: what it had is given up, and what lies before the new one kept. */
static inline void point_store(point *at, point p)
{
    gmd_past_keep(p.before);
    gmd_past_drop(at->before);
    *at = p;
}

/* What is queued on `s` now; to be passed on, not to be stored. */
static inline point stream_point(const stream *s)
{
    return (point){.on = (stream *)s, .ticket = s->tail, .before = s->before};
}

#endif
