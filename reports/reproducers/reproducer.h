/* reproducer.h - what the writers of reproducers share. */
#ifndef GMD_REPRODUCER_INTERNAL_H
#define GMD_REPRODUCER_INTERNAL_H

#include "gmd_reproducer.h"

#include <stdlib.h>

/* Text of any origin within a comment: it cannot end the comment. */
void put_comment_text(const char *text, FILE *out);

/* The case in the text format, each line behind `indent`. */
gmd_status put_case_lines(const gmd_trace *trace, const char *indent, FILE *out, gmd_error *error);

#endif
