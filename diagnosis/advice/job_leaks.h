/* job_leaks.h - what leaks in the job that advice is given on: no setting gives it back. */
#ifndef GMD_ADVICE_JOB_LEAKS_H
#define GMD_ADVICE_JOB_LEAKS_H

#include "gmd_advised_leak.h"
#include "gmd_diagnosis.h"
#include "job_plan.h"

#include <stddef.h>

typedef struct job_leaks {
    gmd_advised_leak *items; /* most bytes first; the caller's to free */
    size_t count;
} job_leaks;

/* What gmd diagnose finds to leak, but at the line that the change leaves out. GMD_NO_MEMORY. */
gmd_status job_leaks_list(job_leaks *leaks, const gmd_diagnosis *diagnosis,
                          const job_change *change, gmd_error *error);

#endif
