/* sweep.h - the fault sweep of a trace, as an outcome among the others of a command. */
#ifndef GMD_CLI_SWEEP_H
#define GMD_CLI_SWEEP_H

#include "results.h"

typedef enum cli_sweep { CLI_SWEEP_NONE, CLI_SWEEP_ALL, CLI_SWEEP_MEMORY } cli_sweep;

/* The value of --sweep[=all|memory]; false: none of these. */
bool cli_sweep_parse(const char *text, cli_sweep *which);

/* Runs `trace` with each of the allocator's device calls failing in turn. `trace` takes over what
 * the options say. */
gmd_status cli_sweep_run(cli_results *results, const gmd_run_options *options, const char *command,
                         const char *path, gmd_trace *trace, cli_sweep which, gmd_error *error);

#endif
