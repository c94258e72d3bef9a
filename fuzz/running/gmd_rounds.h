/* gmd_rounds.h - a relation that needs no knowledge of an allocator: when the same requests are
 * repeated, with no more blocks live than before, they soon need no more of the device.
 *
 * Blocks that a round leaves live are freed at the end of the next one. What is held may grow for a
 * while, by fragmentation and by caches that fill. Growth is a finding where it lasts through the
 * last three doublings of the number of rounds and does not slow down from one to the next: memory
 * that is lost grows so, and a cache does not. */
#ifndef GMD_ROUNDS_H
#define GMD_ROUNDS_H

#include "gmd_driver.h"

/* How often `round` is repeated until `allocations` blocks were asked for: a power of two. */
uint32_t gmd_rounds_count(const gmd_trace *round, uint64_t allocations);

/* Repeats `round` that often under its header's settings; `outcome` (which the caller allocates)
 * has a violation of `progress` where the device's figures grow. */
gmd_status gmd_rounds_run(const gmd_run_options *given, const gmd_trace *round,
                          uint64_t allocations, gmd_outcome *outcome, gmd_error *error);

/* Whether it is this relation that the violation is about. */
bool gmd_rounds_is_growth(const gmd_violation *violation);

/* All requests of `count` rounds as one trace, for what the oracles found on the way. */
gmd_status gmd_rounds_unroll(const gmd_trace *round, uint32_t count, gmd_trace *out,
                             gmd_error *error);

/* Drops what the growth does not need; no try begins after so many seconds (0: no limit). */
void gmd_rounds_minimize(const gmd_run_options *given, gmd_trace *round, uint64_t allocations,
                         double seconds);

#endif
