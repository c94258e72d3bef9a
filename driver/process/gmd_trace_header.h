/* gmd_trace_header.h - what a trace's header says of the run (devices, capacity, settings,
 * schedule), as options, and whether two traces say the same. Thread safety: none is needed. */
#ifndef GMD_TRACE_HEADER_H
#define GMD_TRACE_HEADER_H

#include "gmd_run_options.h"

/* The header lines only; `to` need not be initialised. */
gmd_status gmd_trace_copy_header(gmd_trace *to, const gmd_trace *from, gmd_error *error);

/* All but the interleaving, which does not concern the device and the allocator. */
bool gmd_trace_has_header_of(const gmd_trace *a, const gmd_trace *b);

/* What is in force for a run of this trace, whether it states it or not. A view: nothing is owned.
 */
gmd_trace header_in_force(const gmd_trace *trace, const gmd_run_options *given);

/* The options `given`, and what the header states in place of theirs; they borrow from both. */
void gmd_options_of_header(gmd_run_options *options, const gmd_run_options *given,
                           const gmd_trace *header);

#endif
