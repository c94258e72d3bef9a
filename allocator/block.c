#include "block.h"

#include <stdlib.h>

#define SLAB_BLOCKS (BLOCK_DETAIL_OFFSET / sizeof(block) - 1)

/* The first half holds a header and the blocks, the second one their details at the same places.
 * Nothing of it is touched before it is used, so a stream with few blocks costs few pages. */
struct block_slab {
    block_slab *next;
    char padding[sizeof(block) - sizeof(block_slab *)]; /* a cache line for each block */
    block blocks[SLAB_BLOCKS];
    block_detail unused; /* the header's */
    block_detail details[SLAB_BLOCKS];
};

_Static_assert(offsetof(struct block_slab, details) - offsetof(struct block_slab, blocks) ==
                   BLOCK_DETAIL_OFFSET,
               "a block finds its detail");

bool block_pool_add(block_pool *pool)
{
    block_slab *slab = aligned_alloc(64, sizeof *slab);
    if (!slab) {
        return false;
    }
    while (pool->fresh < pool->fresh_end) {
        block_pool_give(pool, pool->fresh++);
    }
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->fresh = slab->blocks;
    pool->fresh_end = slab->blocks + SLAB_BLOCKS;
    return true;
}

void block_pool_reset(block_pool *pool)
{
    block_slab *kept = pool->slabs;
    if (kept) {
        pool->slabs = kept->next;
    }
    block_pool_release(pool);
    if (kept) {
        kept->next = NULL;
        *pool = (block_pool){
            .slabs = kept, .fresh = kept->blocks, .fresh_end = kept->blocks + SLAB_BLOCKS};
    }
}

void block_pool_release(block_pool *pool)
{
    for (block_slab *slab = pool->slabs, *next; slab; slab = next) {
        next = slab->next;
        free(slab);
    }
    *pool = (block_pool){0};
}
