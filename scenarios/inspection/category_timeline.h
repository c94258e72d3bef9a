/* category_timeline.h - bytes by category at the end of each phase and at its peak.
 *
 * What a block is for is often known only later: a gradient is no .grad yet when it is allocated.
 * So the peak of a phase is taken apart at the phase's end, from the blocks that were alive then.
 */
#ifndef GMD_CATEGORY_TIMELINE_H
#define GMD_CATEGORY_TIMELINE_H

#include "gmd_inspection.h"

struct gmd_seen;

typedef struct gmd_dead { /* was alive at the peak, and died since */
    uint64_t used;
    gmd_category category;
} gmd_dead;

typedef struct gmd_timeline {
    uint64_t clock; /* blocks made so far */
    uint64_t bytes, peak_bytes;
    uint64_t peak_clock; /* the newest block at the peak */
    gmd_dead *dead;
    size_t dead_count, dead_capacity;
} gmd_timeline;

void gmd_timeline_made(gmd_timeline *timeline, struct gmd_seen *block);
void gmd_timeline_gone(gmd_timeline *timeline, const struct gmd_seen *block, gmd_inspection *out);
/* Adds a row; `blocks` are those that are alive. */
void gmd_timeline_phase(gmd_timeline *timeline, const char *label, const struct gmd_seen *blocks,
                        gmd_inspection *out);
void gmd_timeline_free(gmd_timeline *timeline);

#endif
