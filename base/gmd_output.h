/* gmd_output.h - a file that is there whole or not at all.
 *
 * What is written goes to a file beside PATH, which takes PATH's place only when it is complete: a
 * full disk costs nobody the report of yesterday and leaves no half of today's. A link stays one,
 * and the file that it names is replaced. Pipes and devices are written directly, as is "-",
 * standard output, and a file in a folder where no other can be made. A signal that ends gmd
 * removes the file beside PATH (gmd_temporary.h). Thread safety: one output, one thread. */
#ifndef GMD_OUTPUT_H
#define GMD_OUTPUT_H

#include "gmd_error.h"

#include <stdio.h>

typedef struct gmd_output {
    FILE *stream; /* to write to; a caller may put another in front that closes it */
    const char *path;
    char target[4096]; /* PATH with links followed */
    char part[4160];   /* the file beside it; empty: `target` is written directly */
} gmd_output;

/* The path must live as long as the output. On success gmd_output_close() must follow. */
gmd_status gmd_output_open(gmd_output *output, const char *path, gmd_error *error);

/* Whether gmd_output_open() could succeed, found out without a trace: no file is changed, no pipe
 * is opened. */
gmd_status gmd_output_probe(const char *path, gmd_error *error);

/* Puts the file into its place where `status`, that of the writing, is GMD_OK and all bytes are
 * written; removes it where not. Gives `status`, or that of the failure here. */
gmd_status gmd_output_close(gmd_output *output, gmd_status status, gmd_error *error);

/* A folder, with all that lead to it; one that is there is fine. 0, or -1 with errno. */
int gmd_output_folder(const char *path);

#endif
