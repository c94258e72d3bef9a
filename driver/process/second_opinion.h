/* second_opinion.h - what a real device has shown, seen by the simulated one: there it is known
 * which work runs before which, whatever happened this time. */
#ifndef GMD_SECOND_OPINION_H
#define GMD_SECOND_OPINION_H

#include "gmd_run_options.h"
#include "taken.h"

typedef gmd_status run_fn(const gmd_run_options *options, const gmd_workload *workload,
                          gmd_outcome *outcome, gmd_error *error);

/* Where a run on a real device ended with a violation of what memory holds or of the order of work,
 * the same case runs on the simulated device, and a note in the outcome says how that ended.
 * `run` makes the run. Call it in a process that has loaded no CUDA runtime. */
void ask_second_opinion(const gmd_run_options *options, const gmd_workload *workload,
                        taken_run *on_device, run_fn *run);

#endif
