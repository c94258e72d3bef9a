/* run_workload.h - one run of a workload, and what is kept of it. */
#ifndef GMD_CLI_RUN_WORKLOAD_H
#define GMD_CLI_RUN_WORKLOAD_H

#include "results.h"

/* Runs it in a process of its own, or with each seed of --interleave until one finds something.
 * The outcome is the last of `results`; where the run could not be made, none is added. */
gmd_status cli_run_workload(cli_results *results, const gmd_run_options *options,
                            const gmd_workload *workload, gmd_error *error);

#endif
