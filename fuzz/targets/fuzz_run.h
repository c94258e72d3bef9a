/* fuzz_run.h - what the targets that run request sequences share: one allocator for all inputs of
 * the process, and an end of it where one shows a violation. */
#ifndef GMD_FUZZ_RUN_H
#define GMD_FUZZ_RUN_H

#include "gmd_trace.h"

/* Runs the trace with all oracles on the reference allocator, or on the SPEC in the environment
 * variable GMD_FUZZ_ALLOCATOR. What the device or the allocator refuses is no finding. A violation
 * is printed with its oracle and the trace as text, and aborts. */
void fuzz_run(const gmd_trace *trace);

/* Makes any sequence one that the allocator of GMD_FUZZ_ALLOCATOR can be asked for, as gmd fuzz
 * does (gmd_space.h), under the header that it was opened with: without gmd_restart it has no other
 * in this process. What the reference allocator is asked for stays as it is. */
void fuzz_fit(gmd_trace *trace);

/* gmd's own libraries: beside the program, where it was copied with them; else where they were
 * built.
 */
const char *fuzz_lib_directory(void);

#endif
