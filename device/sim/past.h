/* past.h - vector clocks, kept sparse: how far each stream had come, at least, before some moment.
 *
 * A past is immutable and counted, so that an event's record shares its stream's at no cost, and
 * leaves out what the host knows to be over: everything that is queued from now on runs after that
 * anyway. NULL is the empty past. */
#ifndef GMD_SIM_PAST_H
#define GMD_SIM_PAST_H

#include "stream_table.h"

typedef struct past_item {
    stream *on;
    uint64_t ticket; /* all that was queued on the stream up to here */
} past_item;

typedef struct past {
    uint32_t references;
    uint32_t count;
    past_item items[]; /* in ascending order of stream->id */
} past;

static inline past *past_keep(past *p)
{
    if (p) {
        p->references++;
    }
    return p;
}

void past_drop(past *p);

/* How far a past goes on one stream; 0: nothing. */
uint64_t past_on(const past *p, const stream *on);

/* What lies in either past, or up to `item`; nothing of `self`, a stream's own past being what its
 * tickets say. False: the host has no memory. */
bool past_join(const past *a, const past *b, past_item item, const stream *self, past **out);

/* A place in a stream's work: all that is queued up to `ticket`. `before` is what lies before it on
 * other streams; it is needed to follow the point or to learn that it is over. */
typedef struct point {
    stream *on; /* NULL: nothing */
    uint64_t ticket;
    past *before;
} point;

/* For whoever stores a point: what it had is given up, and what lies before the new one kept. */
static inline void point_store(point *at, point p)
{
    past_keep(p.before);
    past_drop(at->before);
    *at = p;
}

/* What is queued on `s` now; to be passed on, not to be stored. */
static inline point stream_point(const stream *s)
{
    return (point){.on = (stream *)s, .ticket = s->tail, .before = s->before};
}

#endif
