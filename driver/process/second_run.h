/* second_run.h - the same requests once more, in another process, for the oracles `determinism`
 * (the same allocator) and `reference` (PyTorch's algorithm). */
#ifndef GMD_SECOND_RUN_H
#define GMD_SECOND_RUN_H

#include "gmd_answers.h"
#include "gmd_run_options.h"
#include "taken.h"

/* Why these requests cannot be run a second time and held against the first; NULL: they can. */
const char *second_run_obstacle(const gmd_run_options *options, const gmd_workload *workload);

/* Runs the workload in a child process and watches it; takes over what it leaves in `shared`. */
typedef gmd_status run_once_fn(const gmd_run_options *options, const gmd_workload *workload,
                               shared_run *shared, taken_run *taken, gmd_error *error);

/* After a first run that kept its answers in options->process.answers: what its oracles
 * `determinism` and `reference` demand, where it passed. */
gmd_status make_second_run(const gmd_run_options *options, const gmd_workload *workload,
                           taken_run *first, run_once_fn *run_once, gmd_error *error);

/* In the child, before anything is loaded: what may differ between two processes does. */
void second_run_perturb(void);

#endif
