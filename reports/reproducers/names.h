/* names.h - what a program calls blocks and streams. */
#ifndef GMD_REPRODUCERS_NAMES_H
#define GMD_REPRODUCERS_NAMES_H

#include "plan.h"

/* An identifier of C and of Python: the case's own name as far as it can be one. */
void name_block(const gmd_trace *trace, uint32_t block, char text[80]);
void name_stream(const gmd_trace *trace, uint32_t stream, char text[80]);

/* The request of a step as text for a comment; it says so where CUDA forbids the request. To be
 * freed; NULL: no host memory. */
char *request_comment(const gmd_trace *trace, const step *first);

#endif
