/* violations.h - what a run found, as findings of a page: with the case that shows it again, and
 * where the run's history is there, the blocks that it is about. */
#ifndef GMD_REPORTS_PAGE_VIOLATIONS_H
#define GMD_REPORTS_PAGE_VIOLATIONS_H

#include "run_history.h"

#include "gmd_gate_result.h"
#include "gmd_outcome.h"

/* The violations of a run. `title`: what it is called; `of`: its own history. */
void violations_of_outcome(document *to, const gmd_outcome *outcome, const char *title,
                           uint32_t input, const run_history *of);

/* What else an outcome says is wrong: a history that was not reproduced, an error. */
void troubles_of_outcome(document *to, const gmd_outcome *outcome, const char *title,
                         uint32_t input);

/* What was found by many runs. `of`: the history of its case, which was run once more. */
void violation_of_campaign(document *to, const gmd_report *report, size_t index, uint32_t input,
                           const run_history *of);
void finding_of_gate(document *to, const gmd_gate_finding *finding, uint32_t input,
                     const run_history *of);

#endif
