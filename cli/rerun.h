/* rerun.h - runs the cases of what a gate, a campaign or a sweep found once more, for the answers
 * that stand beside its findings, and for the histories that its page shows. */
#ifndef GMD_CLI_RERUN_H
#define GMD_CLI_RERUN_H

#include "results.h"

enum { CLI_RERUN_REASON = 400 };

/* Zero-initialised is empty. */
typedef struct cli_rerun {
    cli_results runs;
    gmd_rerun *items; /* of each finding; borrow from the others */
    char (*reasons)[CLI_RERUN_REASON];
    size_t count;
} cli_rerun;

/* Where `results` is a gate or a campaign that is shown to anybody, each case runs in a process of
 * its own, as `gmd run CASE` runs it, and `results` has the histories. What is not run
 * has a reason: there are too many, the time is over, no case was written. Without host memory
 * there are none. `rerun` must outlive the reports. */
void cli_rerun_findings(cli_rerun *rerun, cli_results *results);

/* Likewise the cases of the latest outcome, a sweep's, for the lines beside its findings only. */
void cli_rerun_latest(cli_results *results);

void cli_rerun_free(cli_rerun *rerun);

#endif
