/* block_index.h - which block a byte lies in: live blocks and those that are held back. Memory is
 * divided into granules, small ones for small blocks, and each knows the blocks that reach into it.
 * Sync: the owner's. */
#ifndef GMD_BLOCK_INDEX_H
#define GMD_BLOCK_INDEX_H

#include "guarded_block.h"

#include <stddef.h>

typedef struct granule {
    uint64_t number; /* address >> shift */
    guarded_block **blocks;
    size_t count, capacity; /* a granule whose blocks are gone stays */
} granule;

/* Open addressing, linear probing; at most half full. */
typedef struct granule_map {
    granule *slots;
    size_t mask, count; /* slots - 1, a power of two - 1; 0 without slots */
} granule_map;

/* Zero-initialised is empty. It does not own the blocks. */
typedef struct block_index {
    granule_map small, large;
} block_index;

bool block_index_add(block_index *index, guarded_block *b); /* false: no host memory; not in */
void block_index_remove(block_index *index, const guarded_block *b);

/* The block whose memory, zones included, the byte lies in; NULL: none. */
guarded_block *block_index_find(const block_index *index, uint64_t address);
void block_index_release(block_index *index);

#endif
