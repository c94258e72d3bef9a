/* gmd_oom_outcomes.h - how a job went on after each of its out-of-memories. */
#ifndef GMD_OOM_OUTCOMES_H
#define GMD_OOM_OUTCOMES_H

#include "gmd_facts.h"

/* One list: names are those in JSON. */
#define GMD_OOM_OUTCOMES(OUTCOME)                                                                  \
    OUTCOME(SURVIVED, "survived") /* with its work: a library that tried it took less */           \
    OUTCOME(LOST, "lost")         /* without what the iteration had made until then */             \
    OUTCOME(ENDED, "ended")       /* not at all */

typedef enum gmd_oom_outcome {
#define GMD_OOM_OUTCOME_NUMBER(name, text) GMD_OOM_##name,
    GMD_OOM_OUTCOMES(GMD_OOM_OUTCOME_NUMBER)
#undef GMD_OOM_OUTCOME_NUMBER
        GMD_OOM_OUTCOME_COUNT
} gmd_oom_outcome;

/* Fills in the outcome of each OOM of the device, in order: `outcomes` has place for as many as the
 * recording counts. */
void gmd_oom_outcomes_find(gmd_oom_outcome *outcomes, const gmd_facts *facts);

const char *gmd_oom_outcome_name(gmd_oom_outcome outcome);
/* "Out of memory, which ended the job" */
const char *gmd_oom_outcome_title(gmd_oom_outcome outcome);

#endif
