/* gmd_trace_validity.h - what holds of every trace, wherever it came from: a reader, a generator
 * and whoever changes one leaves it so. For assertions (gmd_assert.h): what a file says wrongly is
 * its reader's error.
 *
 * Thread safety: none is needed; the trace is only read. */
#ifndef GMD_TRACE_VALIDITY_H
#define GMD_TRACE_VALIDITY_H

#include "gmd_trace.h"

/* The sentence that does not hold; NULL: all does. What a request names has an entry, a block or a
 * pool is used only where it is there, and fields are in their ranges. */
const char *gmd_trace_violation(const gmd_trace *trace);

#endif
