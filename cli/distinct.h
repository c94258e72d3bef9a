/* distinct.h - names of runs and recordings by which a person knows which file each is of. */
#ifndef CLI_DISTINCT_H
#define CLI_DISTINCT_H

#include "gmd_outcome.h"

#include <stddef.h>

/* The end of `path`, one of `paths`, the inputs of a command: the file's name, and where others of
 * them have that name, as much before it as tells it apart: of old/run/c.gmd and new/run/c.gmd
 * these paths, of a/c.gmd and b/d/c.gmd "a/c.gmd" and "d/c.gmd". */
const char *cli_distinct_name(const char *path, const char *const *paths, size_t count);

/* Names an outcome of one of `paths` so. What does not fit into a name, and what has no path, keeps
 * its own. */
void cli_tell_apart(gmd_outcome *outcome, const char *const *paths, size_t count);

#endif
