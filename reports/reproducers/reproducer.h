/* reproducer.h - what the writers of reproducers share. */
#ifndef GMD_REPRODUCERS_REPRODUCER_H
#define GMD_REPRODUCERS_REPRODUCER_H

#include "gmd_reproducer.h"

#include <stdlib.h>

/* Text of any origin within a comment: it cannot end the comment. */
void put_comment_text(const char *text, FILE *out);

/* Likewise, in lines of at most 98 columns. */
void put_wrapped(const char *text, const char *indent, FILE *out);

/* A literal of C. */
void put_c_string(const char *text, FILE *out);

/* What the case shows and where it comes from, as far as that is known. */
void put_findings(const gmd_reproducer *reproducer, const char *indent, FILE *out);

/* Calls of the device fail on purpose. */
bool needs_simulator(const gmd_trace *trace);

#endif
