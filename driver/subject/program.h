/* program.h - runs another program to its end, without a shell, and keeps what it says. */
#ifndef GMD_PROGRAM_H
#define GMD_PROGRAM_H

#include "gmd_error.h"

#include <stddef.h>

/* Runs arguments[0], looked for in $PATH, with arguments up to NULL. Its standard output (and, with
 * `descriptor` 2, its standard error instead) goes into `text`, cut to `size` with a zero at the
 * end; the other one goes where gmd's own goes. `*exit_status` gets the program's status, or 128
 * and the number of the signal that ended it. GMD_BAD_INPUT: there is no such program. */
gmd_status spawn_program(const char *const *arguments, int descriptor, char *text, size_t size,
                         int *exit_status, gmd_error *error);

#endif
