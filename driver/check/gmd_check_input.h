/* gmd_check_input.h - what a run is held against (gmd_check.h). */
#ifndef GMD_CHECK_INPUT_H
#define GMD_CHECK_INPUT_H

#include "gmd_history.h"
#include "gmd_outcome.h"
#include "gmd_snapshot.h"
#include "gmd_truth.h"

typedef struct gmd_check_input {
    const gmd_history *history;
    const gmd_snapshot *snapshot; /* its segments are the end state */
    const gmd_truth *truth;       /* the recorder's side files; NULL: none */
    uint32_t quirks; /* deviations of the recorded version that the allocator keeps to, where it
                        can: a set of quirk_kinds */
    const gmd_check *as_recorded; /* the outcome with all of them, for the first difference without;
                                     NULL: not known */
} gmd_check_input;

#endif
