/* job_plan.h - the requests of a recorded job on one device, as they are replayed under one setting
 * after the other: those of its history, the blocks that were there before it, and what the user
 * changes about the job. */
#ifndef GMD_ADVICE_JOB_PLAN_H
#define GMD_ADVICE_JOB_PLAN_H

#include "gmd_facts.h"
#include "gmd_history.h"
#include "gmd_recorded_places.h"
#include "gmd_truth.h"
#include "job_steps.h"
#include "lower_bound.h"

/* What the user changes about the job. */
typedef struct job_change {
    const char *file; /* requests of this line are left out: the end of a path; NULL: none */
    uint32_t line;
    double scale; /* of what varies with the batch; 1: as recorded */
} job_change;

typedef struct job_plan {
    job_steps steps;
    gmd_recorded_places places;
    uint64_t limit_bytes; /* that the job ran under; 0: none */
    bool is_limit_inferred;
    uint64_t refused;      /* requests that were refused when it was recorded */
    uint64_t left_out;     /* requests, by the change */
    uint64_t scaled;       /* likewise */
    uint64_t early_blocks; /* were there before the recording */
    lower_bounds bounds;
    bool has_private_pools;
} job_plan;

/* `truth`: what the recorder knew, of the same device; empty where it left nothing. The facts are
 * of a snapshot of one device. GMD_BAD_INPUT: the history contradicts itself, or no request is of
 * the line that is to be left out; the message says what is wrong. On failure it is left empty. */
gmd_status job_plan_make(job_plan *plan, const gmd_facts *facts, const gmd_truth *truth,
                         const job_change *change, const char *name, gmd_error *error);
void job_plan_free(job_plan *plan);

#endif
