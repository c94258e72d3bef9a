/* lower_bound.h - what no setting can go below, even if it knew the future. */
#ifndef GMD_ADVICE_LOWER_BOUND_H
#define GMD_ADVICE_LOWER_BOUND_H

#include "gmd_error.h"
#include "job_steps.h"

typedef struct lower_bounds {
    uint64_t live;     /* the most bytes of blocks that live at a time */
    uint64_t reserved; /* what any setting has to reserve */
} lower_bounds;

/* Blocks cannot be moved, and are multiples of 512 bytes: the most that is live at a time is a
 * bound. Segments, and pages of expandable ones, are multiples of 2 MiB, and each is for the blocks
 * of one stream and of one pool, small (requests up to 1 MiB) or large: what is live at a moment,
 * of each stream and pool rounded up to 2 MiB, is a higher one, and as certain. A request that was
 * refused counts: for the job to fit, it must be served. */
gmd_status lower_bound_find(lower_bounds *bounds, const job_steps *steps, const char *name,
                            gmd_error *error);

#endif
