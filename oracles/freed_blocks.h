/* freed_blocks.h - blocks that had their stream for themselves when they were allocated, and were
 * freed, as long as nothing tells that somebody else has got their memory. Where no block of the
 * stream is live, an allocator is to serve a request of the kind as it did then.
 *
 * It forgets rather than errs: a block on another stream of the device, a call that takes memory
 * back, a fault, and requests that it is not shown all make it drop what it cannot be sure of. */
#ifndef GMD_FREED_BLOCKS_H
#define GMD_FREED_BLOCKS_H

#include "gmd_oracle.h"

enum { FREED_BLOCKS = 16, FREED_STREAMS = 32 };

typedef struct freed_block {
    uint64_t address, bytes, born;
    uint32_t stream;
    int device;
    uint8_t thread; /* that freed it */
} freed_block;

typedef struct freed_stream {
    uint32_t stream;
    int device;
    uint64_t live;       /* blocks */
    uint64_t first_born; /* of the latest block that was allocated when none was live */
} freed_stream;

/* All zero: none. */
typedef struct freed_blocks {
    freed_block list[FREED_BLOCKS];
    freed_stream streams[FREED_STREAMS];
    uint32_t count, stream_count;
    bool is_lost; /* requests were not shown, or there are too many streams */
} freed_blocks;

/* before_free, and after_request of each request. */
void freed_blocks_add(freed_blocks *blocks, const gmd_view *view);
void freed_blocks_follow(freed_blocks *blocks, const gmd_view *view);

/* One of as many bytes as the request's, freed by its thread on its stream, where no block of the
 * stream is live; NULL: there is none. */
const freed_block *freed_blocks_find(const freed_blocks *blocks, const gmd_view *view);

#endif
