/* asks.h - what a call asks of the allocator, forwards and backwards, in order.
 *
 * "+N -M" is an allocation of N bytes and a free of M. A has 1,024 numbers: 4096 bytes in 32 bits.
 */
#ifndef ASKS_H
#define ASKS_H

#include "gmd_test.h"
#include "scenario_bench.h"

#define A   "a = randn { 16, 64, requires_grad = true }"
#define A_B A "\nb = randn { 16, 64, requires_grad = true }"
/* A sum, its gradient of one, and both go. */
#define SUM     "+4 +4 "
#define SUM_END " -4 -4"

/* Runs `inputs`, then `call`, which makes `out`, and a backward pass of its sum; fails the test
 * where the last two ask for something else. NULL: not compared. */
void assert_asks(const char *inputs, const char *call, const char *forward, const char *backward);

#endif
