/* distinct.h - names of runs by which a person knows which file each is of. */
#ifndef CLI_DISTINCT_H
#define CLI_DISTINCT_H

#include "gmd_outcome.h"

#include <stddef.h>

/* Where files of one name are among `paths`, the inputs of a command, an outcome of one of them is
 * named by as much of the end of its path as tells it apart: of old/run/c.gmd and new/run/c.gmd
 * these paths, of a/c.gmd and b/d/c.gmd "a/c.gmd" and "d/c.gmd". What does not fit into a name, and
 * what has no path, keeps its own. */
void cli_tell_apart(gmd_outcome *outcome, const char *const *paths, size_t count);

#endif
