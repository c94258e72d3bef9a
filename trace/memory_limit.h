/* memory_limit.h - the memory limit that a recorded job ran under, which a snapshot does not hold.
 */
#ifndef GMD_TRACE_MEMORY_LIMIT_H
#define GMD_TRACE_MEMORY_LIMIT_H

#include "free_run.h"
#include "gmd_history_hints.h"
#include "gmd_recorded_settings.h"

/* The highest limit that the requests which were served and refused allow and that explains the
 * retries; 0: nothing speaks for one. False: no host memory. */
bool memory_limit_infer(const free_runs *runs, const gmd_recorded_settings *settings,
                        const gmd_history_hints *hints, uint64_t *limit_bytes);

/* Whether one limit, the one that was given or any, cannot explain which requests were served and
 * which were refused. */
bool memory_limit_is_contradicted(const free_runs *runs);

#endif
