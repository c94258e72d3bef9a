/* play_inputs.h - `gmd run` and `gmd replay` of one input, for a command that does the same to it
 * and tells it otherwise. */
#ifndef GMD_CLI_PLAY_INPUTS_H
#define GMD_CLI_PLAY_INPUTS_H

#include "results.h"
#include "variants.h"

/* A scenario or a trace, once. What fails before a run is an outcome of its own. */
void cli_run_input(const cli_options *options, const char *input, char *const *params,
                   size_t param_count, cli_results *results);

/* Likewise a PyTorch memory snapshot or a trace, without --check. */
void cli_replay_input(const cli_options *options, const char *input, cli_results *results);

#endif
