/* second_run.h - the same requests once more, in another process, for the oracles `determinism`
 * (the same allocator) and `reference` (PyTorch's algorithm). */
#ifndef GMD_SECOND_RUN_H
#define GMD_SECOND_RUN_H

#include "gmd_answers.h"
#include "gmd_run_options.h"
#include "gmd_shared.h"

/* Why these requests cannot be run a second time and held against the first; NULL: they can. */
const char *second_run_obstacle(const gmd_run_options *options, const gmd_workload *workload);

/* Runs the workload in a child process and watches it. */
typedef gmd_status run_once_fn(const gmd_run_options *options, const gmd_workload *workload,
                               shared_run *shared, gmd_error *error);

/* After a first run that passed and kept its answers in shared->answers: what its oracles
 * `determinism` and `reference` demand. */
gmd_status make_second_run(const gmd_run_options *options, const gmd_workload *workload,
                           shared_run *shared, run_once_fn *run_once, gmd_error *error);

/* In the child, before anything is loaded: what may differ between two processes does. */
void second_run_perturb(void);

#endif
