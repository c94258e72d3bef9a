/* block_set.h - the live blocks, by address. Sync: the owner's. */
#ifndef GMD_BLOCK_SET_H
#define GMD_BLOCK_SET_H

#include "guarded_block.h"

#include <stddef.h>

/* Zero-initialised is empty. It does not own the blocks. */
typedef struct block_set {
    guarded_block **slots; /* open addressing, linear probing; at most half full */
    size_t mask, count;    /* slots - 1, a power of two - 1; 0 without slots */
} block_set;

bool block_set_add(block_set *set, guarded_block *block);              /* false: no host memory */
guarded_block *block_set_find(const block_set *set, uint64_t address); /* NULL: none begins there */
guarded_block *block_set_take(block_set *set, uint64_t address); /* likewise; it is in no more */

void block_set_release(block_set *set);

#endif
