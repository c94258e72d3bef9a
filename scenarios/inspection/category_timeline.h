/* category_timeline.h - bytes by category at the end of each phase and at its peak.
 *
 * The category of a block is often known only later: a gradient is not yet a .grad when it is
 * allocated. So the peak of a phase is split by category at the phase's end, from the blocks that
 * were alive at the peak. */
#ifndef GMD_CATEGORY_TIMELINE_H
#define GMD_CATEGORY_TIMELINE_H

#include "gmd_inspection.h"

struct live_block;

struct dead_block { /* was alive at the peak and has been freed since */
    uint64_t used;
    gmd_category category;
};

struct category_timeline {
    uint64_t clock; /* blocks made so far */
    uint64_t bytes, peak_bytes;
    uint64_t peak_clock; /* the newest block at the peak */
    struct dead_block *dead;
    size_t dead_count, dead_capacity;
};

void category_timeline_made(struct category_timeline *timeline, struct live_block *block);
void category_timeline_gone(struct category_timeline *timeline, const struct live_block *block,
                            gmd_inspection *out);
/* Adds a row; `blocks` are those that are alive. */
void category_timeline_phase(struct category_timeline *timeline, const char *label,
                             const struct live_block *blocks, gmd_inspection *out);
void category_timeline_free(struct category_timeline *timeline);

#endif
