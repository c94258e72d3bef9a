/* writable.h - whether a result can be written where it is to go, found out before the work. */
#ifndef GMD_CLI_WRITABLE_H
#define GMD_CLI_WRITABLE_H

#include "gmd_error.h"

#include <stdbool.h>

/* Nothing is changed, and nobody who reads a pipe at PATH sees anything. "-" is standard output. */
gmd_status cli_probe_file(const char *path, gmd_error *error);

/* A folder in which files can be made, or one that can be made, with all that lead to it; it is
 * left as it was. */
gmd_status cli_probe_folder(const char *path, gmd_error *error);

/* Whether writing `a` would replace `b`: the same file by any name, or the same place of a file
 * that is yet to be made. Devices and pipes replace nothing. */
bool cli_is_same_file(const char *a, const char *b);

#endif
