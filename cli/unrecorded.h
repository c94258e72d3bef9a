/* unrecorded.h - the calls of cuDNN whose workspaces runs had to estimate, as a list that
 * integrations/workspaces/record_workspaces.py takes with --shapes. Runs are in processes of their
 * own: each adds its lines to one file that has no name. */
#ifndef GMD_CLI_UNRECORDED_H
#define GMD_CLI_UNRECORDED_H

#include "gmd_error.h"

#include <stdio.h>

/* The file that runs add to; NULL with a message. To be closed by cli_unrecorded_write(). */
FILE *cli_unrecorded_open(gmd_error *error);

/* Writes each call once, in the order of their text, to `path` ("-": standard output), and closes
 * `calls`. */
gmd_status cli_unrecorded_write(FILE *calls, const char *path, gmd_error *error);

#endif
