/* smallest.h - how much memory a workload needs: the smallest limit that it runs in. */
#ifndef GMD_CLI_SMALLEST_H
#define GMD_CLI_SMALLEST_H

#include "results.h"

/* Runs the workload without a limit (or with the one given), then bisects the limit between nothing
 * and what was reserved at the peak, to 2 MiB. Keeps the outcome of the smallest that it runs in,
 * with notes on the others; or the first outcome that failed for another reason than memory. */
gmd_status cli_smallest_run(cli_results *results, const gmd_run_options *options,
                            const gmd_workload *workload, gmd_error *error);

#endif
