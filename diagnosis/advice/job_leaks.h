/* job_leaks.h - what leaks in the job that advice is given on: no setting gives it back. */
#ifndef GMD_ADVICE_JOB_LEAKS_H
#define GMD_ADVICE_JOB_LEAKS_H

#include "gmd_advice.h"
#include "gmd_diagnosis.h"
#include "job_plan.h"

/* What gmd diagnose finds to leak, but at the line that the change leaves out. GMD_NO_MEMORY. */
gmd_status job_leaks_list(gmd_advice *advice, const gmd_diagnosis *diagnosis,
                          const job_change *change, gmd_error *error);

#endif
