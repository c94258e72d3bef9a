/* freed_blocks.h - the blocks that were freed last, as long as nothing tells that somebody else has
 * got their memory: what an allocator has at hand for another request of the kind.
 *
 * It forgets rather than errs: a block on another stream of the device, a call that takes memory
 * back, a fault, and requests that it is not shown all make it drop what it cannot be sure of. */
#ifndef GMD_FREED_BLOCKS_H
#define GMD_FREED_BLOCKS_H

#include "gmd_oracle.h"

enum { FREED_BLOCKS = 16 };

typedef struct freed_block {
    uint64_t address, bytes, born;
    uint32_t stream;
    int device;
    uint8_t thread; /* that freed it */
} freed_block;

/* All zero: none. */
typedef struct freed_blocks {
    freed_block list[FREED_BLOCKS];
    uint32_t count;
    uint64_t next_request; /* the one that is to be shown next */
} freed_blocks;

/* before_free, and after_request of each request. */
void freed_blocks_add(freed_blocks *blocks, const gmd_view *view);
void freed_blocks_follow(freed_blocks *blocks, const gmd_view *view);

/* One of as many bytes as the request's, freed by its thread on its stream, where no block of the
 * stream is live; NULL: there is none. */
const freed_block *freed_blocks_find(const freed_blocks *blocks, const gmd_view *view);

#endif
