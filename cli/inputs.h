/* inputs.h - reads the files that commands are given, whatever their form. */
#ifndef GMD_CLI_INPUTS_H
#define GMD_CLI_INPUTS_H

#include "gmd_trace.h"
#include "options.h"

/* Reads a .gmd file; what its header states about the device holds unless an option says otherwise.
 */
gmd_status cli_read_trace(gmd_trace *trace, const char *path, const cli_options *given,
                          gmd_run_options *options, gmd_error *error);

/* Whether it is called as what --json wrote. */
bool cli_is_result(const char *input);
/* Where such a file is no input. */
void cli_refuse_result(struct argp_state *state, const char *input);
/* Likewise a trace, for commands that read recordings. */
void cli_refuse_trace(struct argp_state *state, const char *input);
/* Where a command takes no arguments: a library is one for --allocator. */
void cli_refuse_argument(struct argp_state *state, const char *text);

#endif
