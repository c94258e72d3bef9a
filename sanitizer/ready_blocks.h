/* ready_blocks.h - blocks of one device that were verified after their time in quarantine, and
 * whose zones still hold their pattern: the next request of the same size on the same stream gets
 * one with no work for the device. Sync: the owner's. */
#ifndef GMD_READY_BLOCKS_H
#define GMD_READY_BLOCKS_H

#include "guarded_block.h"

#include <stddef.h>

enum { READY_SLOTS = 1024 };

/* Zero-initialised is empty. It does not own the blocks. */
typedef struct ready_blocks {
    guarded_block *slots[READY_SLOTS]; /* by size and stream, the latest first */
    uint64_t bytes;                    /* of their memory */
} ready_blocks;

void ready_blocks_add(ready_blocks *r, guarded_block *block);

/* NULL: none of that size and stream. */
guarded_block *ready_blocks_take(ready_blocks *r, uint64_t size, cudaStream_t stream);
guarded_block *ready_blocks_take_any(ready_blocks *r); /* NULL: none at all */

/* Those of a stream that is gone are given to nobody. */
void ready_blocks_lose_stream(ready_blocks *r, cudaStream_t stream);

#endif
