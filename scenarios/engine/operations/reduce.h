/* reduce.h - sums over dimensions of a tensor, as PyTorch's reduction kernel takes memory for them.
 */
#ifndef GMD_REDUCE_H
#define GMD_REDUCE_H

#include "gmd_tensor.h"

/* The largest power of two that is at most `n`, which is at least 1. */
uint64_t last_power_of_two(uint64_t n);

/* Scratch memory of one reduction: each of `outputs` results is the sum of `inputs` elements of
 * `bytes` bytes. `inner`: how many outputs lie side by side in the input, 1 where it is expanded; 0
 * when it is the innermost dimension that is summed. */
void reduce_scratch(struct engine *engine, uint64_t outputs, uint64_t inputs, uint64_t inner,
                    uint64_t bytes);

/* That of a reduction of `whole` to `part`; `bytes` of what is kept for each element. */
void reduce_scratch_to(struct engine *engine, const struct shape *whole, const struct shape *part,
                       uint64_t bytes);

/* A new tensor: `whole` summed to a shape that it was broadcast from (dimensions of size 1 or
 * missing at the front are summed over). */
struct tensor *reduce_to(struct engine *engine, const struct shape *whole, const struct shape *part,
                         enum dtype dtype);

/* Likewise of a tensor that is expanded from one element: a thread then loads one at a time. */
struct tensor *reduce_expanded_to(struct engine *engine, const struct shape *whole,
                                  const struct shape *part, enum dtype dtype);

#endif
