/* reproduce.h - a case as a program that needs no gmd. */
#ifndef GMD_CLI_REPRODUCE_H
#define GMD_CLI_REPRODUCE_H

#include "reading.h"

#include "gmd_reproducer.h"

typedef gmd_status cli_reproduce_fn(const gmd_reproducer *reproducer, FILE *out, gmd_error *error);

/* Writes the .gmd case at `path` to the file `output`, whole or not at all. `allocator` and
 * `verdict`: what it is for and is to show; NULL: what the case itself says. */
gmd_status cli_reproduce(const char *path, const char *output, cli_reproduce_fn *writer,
                         const char *allocator, const char *verdict, const cli_reading *reading,
                         gmd_error *error);

/* Whether it is the name of an oracle, or of a kind, with or without parties. */
bool cli_is_verdict(const char *text);

#endif
