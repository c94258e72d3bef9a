/* past.h - vector clocks, kept sparse: how far each stream had come, at least, before some moment.
 *
 * A past is immutable and counted, so that an event's record shares its stream's at no cost, and
 * leaves out what the host knows to be over: everything that is queued from now on runs after that
 * anyway. NULL is the empty past. */
#ifndef GMD_SIM_PAST_H
#define GMD_SIM_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stream;

typedef struct past_item {
    struct stream *on;
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
uint64_t past_on(const past *p, const struct stream *on);

/* What lies in either past, or up to `item`; nothing of `self`, a stream's own past being what its
 * tickets say. False: the host has no memory. */
bool past_join(const past *a, const past *b, past_item item, const struct stream *self, past **out);

#endif
