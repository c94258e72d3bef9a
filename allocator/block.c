#include "block.h"

#include <stdlib.h>
#include <string.h>

#define SLAB_BLOCKS 1023 /* 64 KiB a slab, its header included */

struct block_slab {
    block_slab *next;
    char padding[64 - sizeof(block_slab *)]; /* keeps every block on a cache line of its own */
    block blocks[SLAB_BLOCKS];
};

static bool add_slab(block_pool *pool)
{
    block_slab *slab = aligned_alloc(64, sizeof *slab);
    if (!slab) {
        return false;
    }
    slab->next = pool->slabs;
    pool->slabs = slab;
    /* Ascending order in the spare list, so that consecutive requests get neighbouring lines. */
    for (size_t i = SLAB_BLOCKS; i-- > 0;) {
        slab->blocks[i].next = pool->spare;
        pool->spare = &slab->blocks[i];
    }
    return true;
}

block *block_pool_take(block_pool *pool)
{
    if (!pool->spare && !add_slab(pool)) {
        return NULL;
    }
    block *b = pool->spare;
    pool->spare = b->next;
    memset(b, 0, sizeof *b);
    return b;
}

void block_pool_give(block_pool *pool, block *b)
{
    b->next = pool->spare;
    pool->spare = b;
}

void block_pool_release(block_pool *pool)
{
    for (block_slab *slab = pool->slabs, *next; slab; slab = next) {
        next = slab->next;
        free(slab);
    }
    pool->slabs = NULL;
    pool->spare = NULL;
}
