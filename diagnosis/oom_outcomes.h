/* oom_outcomes.h - how a job went on after each of its out-of-memories. */
#ifndef GMD_DIAGNOSIS_OOM_OUTCOMES_H
#define GMD_DIAGNOSIS_OOM_OUTCOMES_H

#include "gmd_ooms.h"

/* Fills in the outcome of each OOM of the device, in order: `outcomes` has place for as many as the
 * recording counts. */
void oom_outcomes_find(gmd_oom_outcome *outcomes, const gmd_facts *facts);

#endif
