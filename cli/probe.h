/* probe.h - whether a result can be written where it is to go, found out before the work. */
#ifndef GMD_CLI_PROBE_H
#define GMD_CLI_PROBE_H

#include "gmd_error.h"

/* A file that is there keeps its contents; one that is not is not there afterwards either. "-" is
 * standard output. */
gmd_status cli_probe_file(const char *path, gmd_error *error);

/* A folder in which files can be made, or one that can be made; it is left as it was. */
gmd_status cli_probe_folder(const char *path, gmd_error *error);

#endif
