/* gmd_gate.h - a fixed battery against an allocator under test: cases, scenarios, faults, random
 * sequences, rounds repeated. The same seed gives the same verdict: all of it is counted in runs,
 * not by the clock.
 *
 * Simulated device only. Thread safety: one gate at a time. */
#ifndef GMD_GATE_H
#define GMD_GATE_H

#include "gmd_gate_options.h"
#include "gmd_gate_result.h"

/* GMD_BAD_INPUT: the allocator cannot be loaded, or an option names nothing. `result` is to be
 * freed in any case. */
gmd_status gmd_gate_run(const gmd_gate_options *options, gmd_gate_result *result, gmd_error *error);

#endif
