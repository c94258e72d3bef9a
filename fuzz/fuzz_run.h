/* fuzz_run.h - what the targets that run request sequences share: one allocator for all inputs of
 * the process, and an end of it where one shows a violation. */
#ifndef GMD_FUZZ_RUN_H
#define GMD_FUZZ_RUN_H

#include "gmd_trace.h"

/* Runs the trace with all oracles on the reference allocator, or on the SPEC in the environment
 * variable GMD_FUZZ_ALLOCATOR. What the device or the allocator refuses is no finding. A violation
 * is printed with its oracle and the trace as text, and aborts. */
void gmd_fuzz_run(const gmd_trace *trace);

/* gmd's own libraries: beside the program, where it was copied with them; else where they were
 * built.
 */
const char *gmd_fuzz_lib_directory(void);

#endif
