/* gmd_past.h - vector clocks, kept sparse: how far each stream had come, at least, before some
 * moment.
 *
 * A ticket is a position in a stream's work: what is queued is numbered from 1. A past is immutable
 * and counted, so that an event's record shares its stream's at no cost, and leaves out what the
 * host knows to be over: everything that is queued from now on runs after that anyway. NULL is the
 * empty past. One thread at a time works with the pasts that share streams. */
#ifndef GMD_PAST_H
#define GMD_PAST_H

#include <stdbool.h>
#include <stdint.h>

/* What a past has to know of a stream; a part of whoever keeps streams. */
typedef struct gmd_progress {
    uint32_t id; /* tells streams apart that are in use, and orders them */
    uint64_t
        known; /* the host knows that all up to this ticket is over, and all that is before it */
} gmd_progress;

typedef struct gmd_past_item {
    gmd_progress *on;
    uint64_t ticket; /* all that was queued on the stream up to here */
} gmd_past_item;

typedef struct gmd_past {
    uint32_t references;
    uint32_t count;
    gmd_past_item items[]; /* in ascending order of on->id */
} gmd_past;

static inline gmd_past *gmd_past_keep(gmd_past *p)
{
    if (p) {
        p->references++;
    }
    return p;
}

void gmd_past_drop(gmd_past *p);

/* How far a past goes on one stream; 0: nothing. */
uint64_t gmd_past_on(const gmd_past *p, const gmd_progress *on);

/* What lies in either past, or up to `item`; nothing of `self`, a stream's own past being what its
 * tickets say. The caller has a reference to *out. False: the host has no memory. */
bool gmd_past_join(const gmd_past *a, const gmd_past *b, gmd_past_item item,
                   const gmd_progress *self, gmd_past **out);

#endif
