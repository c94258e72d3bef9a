/* search_outcome.h - what campaigns, sweeps and exhaustive searches, which make very many runs,
 * have in common as one outcome. */
#ifndef GMD_CLI_SEARCH_OUTCOME_H
#define GMD_CLI_SEARCH_OUTCOME_H

#include "results.h"

#include "gmd_findings.h"
#include "gmd_runner.h"

/* The violations, what each oracle said of all runs together, and the verdict that follows. A case
 * that could not be written is a note. */
void cli_add_findings(gmd_outcome *outcome, const gmd_findings *findings, const gmd_judged *judged);

/* Keeps for reports how a campaign came upon each of its findings; without host memory, nothing. */
void cli_keep_found(cli_results *results, const gmd_findings *findings);

/* Has the commands that show a hang again say --timeout where `budget_s`, which a request had at
 * most, is not what 'gmd run' gives it. */
void cli_keep_budget(cli_results *results, double budget_s);

/* The search did not come to its end: what it found stays. GMD_OK: it did. */
void cli_end_search(gmd_outcome *outcome, gmd_status status, const gmd_error *error);

#endif
