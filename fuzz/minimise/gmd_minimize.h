/* gmd_minimize.h - the smallest sequence with the same verdict.
 *
 * Delta debugging: blocks are dropped with all their requests, then chunks of requests, then single
 * ones; then what is left is made simple: settings, schedule, devices, threads, streams, sizes,
 * durations, faults. Each step is kept only where a run in a process of its own still ends with the
 * same cause (kind and parties). The same input gives the same result. */
#ifndef GMD_MINIMIZE_H
#define GMD_MINIMIZE_H

#include "gmd_cause.h"
#include "gmd_minimize_limits.h"
#include "gmd_runner.h"

/* Makes `trace`, which must show `cause` when `runner` runs it, smaller in place. GMD_BAD_INPUT: it
 * does not show the cause; then nothing is changed. An interruption ends it with the smallest so
 * far; GMD_INTERRUPTED: there is none yet, and nothing is changed. */
gmd_status gmd_minimize(gmd_trace *trace, gmd_runner *runner, const gmd_identity *cause,
                        const gmd_minimize_limits *limits, gmd_minimized *result, gmd_error *error);

#endif
