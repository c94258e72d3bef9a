/* gmd_history_hints.h - what is known of a recorded job that its snapshot does not hold. */
#ifndef GMD_HISTORY_HINTS_H
#define GMD_HISTORY_HINTS_H

#include "gmd_truth.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GMD_RETRIES_UNKNOWN UINT64_MAX

/* What is known of the job from elsewhere. */
typedef struct gmd_history_hints {
    uint64_t limit_bytes; /* the memory limit that it ran under; 0: not known, to be inferred */
    uint64_t recorded_retries; /* num_alloc_retries at its end; GMD_RETRIES_UNKNOWN */
    /* Frees that waited for other streams are to wait again, and as long: each gets work on a
     * stream of the replay's own before it, and the clock moves. For the simulated device. */
    bool waits_again;
    /* A block whose request was refused is freed right after it: the job did not have it, though a
     * replay may. */
    bool frees_refused;
    const gmd_truth_op
        *ops; /* the recorder's operations, with the retries after each; NULL: none */
    size_t op_count;
} gmd_history_hints;

#endif
