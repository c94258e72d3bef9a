/* block.h - a block: a range of a segment, allocated or free.
 *
 * Neighbours within a segment are linked by address, so that a free block finds what to merge with
 * in O(1). Blocks come from slabs and are recycled: no malloc on the hot path. One block is one
 * cache line. */
#ifndef GMD_BLOCK_H
#define GMD_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct free_set free_set;

typedef struct block {
    uint64_t address;
    uint64_t size;              /* bytes, a multiple of 512 */
    uint64_t requested_size;    /* bytes asked for by the current or the last owner */
    struct block *previous;     /* neighbour below in the same segment; NULL at its start */
    struct block *next;         /* neighbour above; NULL at its end. Recycled blocks: next spare */
    struct block *left, *right; /* children in the free set's tree; unused while allocated */
    uint64_t set_and_state;     /* free_set pointer, tagged: see block_set, block_is_allocated */
} block;

_Static_assert(sizeof(block) == 64, "a block is one cache line");

#define BLOCK_ALLOCATED ((uint64_t)1)

static inline free_set *block_set(const block *b)
{
    return (free_set *)(uintptr_t)(b->set_and_state & ~BLOCK_ALLOCATED);
}

static inline bool block_is_allocated(const block *b)
{
    return b->set_and_state & BLOCK_ALLOCATED;
}

static inline bool block_is_split(const block *b)
{
    return b->previous || b->next;
}

/* A source of blocks; zero-initialised is empty. Sync: the owner's lock. */
typedef struct block_slab block_slab;
typedef struct block_pool {
    block *spare;
    block_slab *slabs;
} block_pool;

block *block_pool_take(block_pool *pool); /* zeroed; NULL: no host memory */
void block_pool_give(block_pool *pool, block *b);
void block_pool_release(block_pool *pool); /* frees all slabs: every block becomes invalid */

#endif
