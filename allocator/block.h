/* block.h - a block: a range of a segment, allocated, free, or waiting for other streams' work.
 *
 * Neighbours within a segment are linked by address, so that a free block finds what to merge with
 * in O(1). Blocks come from slabs and are recycled: no malloc on the hot path. What every request
 * touches is one cache line, the block; what only some need is a second one, block_detail. */
#ifndef GMD_BLOCK_H
#define GMD_BLOCK_H

#include "gmd_assert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct free_set free_set;
typedef struct segment segment;
typedef struct stream_use stream_use;

typedef struct block {
    uint64_t address;
    uint64_t size;              /* bytes, a multiple of 512 */
    uint64_t requested_size;    /* bytes asked for by the current or the last owner */
    struct block *previous;     /* neighbour below in the same segment; NULL at its start */
    struct block *next;         /* neighbour above; NULL at its end. Recycled blocks: next spare */
    struct block *left, *right; /* children in a tree of free or unmapped blocks */
    uint64_t set_and_state;     /* free_set pointer, tagged with the BLOCK_ bits */
} block;

_Static_assert(sizeof(block) == 64, "a block is one cache line");

/* A recycled block's detail is what its last owner left: each field is valid only as said. */
typedef struct block_detail {
    segment *expandable;  /* BLOCK_EXPANDABLE: the segment that it is a part of */
    stream_use *uses;     /* BLOCK_USED: the other streams that it was recorded on */
    uint32_t event_count; /* BLOCK_PENDING: events of other streams that it waits for */
    uint32_t stack;       /* allocated, while the history keeps stacks: of its allocation */
    uint64_t lookups;     /* free, of cudaMalloc: its pool's count of lookups when it became free */
    uint64_t visits;      /* of the latest walk of validity.c */
    uint64_t capture;     /* of a private pool, with reuses_in_captures: the capture that it was
                             allocated in, by its id; 0: none */
    uint64_t padding[2];
} block_detail;

_Static_assert(sizeof(block_detail) == 64, "a detail is one cache line");

/* Where a block's detail lies behind it: half a slab further, see block.c. */
#define BLOCK_DETAIL_OFFSET 65536

static inline block_detail *block_detail_of(block *b)
{
    return (block_detail *)(void *)((char *)b + BLOCK_DETAIL_OFFSET);
}

static inline const block_detail *block_detail_seen(const block *b)
{
    return (const block_detail *)(const void *)((const char *)b + BLOCK_DETAIL_OFFSET);
}

#define BLOCK_ALLOCATED  ((uint64_t)1)
#define BLOCK_PENDING    ((uint64_t)2) /* freed, but other streams' work may still use it */
#define BLOCK_UNMAPPED   ((uint64_t)4) /* addresses of an expandable segment without memory */
#define BLOCK_EXPANDABLE ((uint64_t)8)
#define BLOCK_USED       ((uint64_t)16) /* detail.uses is not empty */
#define BLOCK_STATE_BITS ((uint64_t)63)

static inline free_set *block_set(const block *b)
{
    return (free_set *)(uintptr_t)(b->set_and_state & ~BLOCK_STATE_BITS);
}

static inline bool block_is_allocated(const block *b)
{
    return b->set_and_state & BLOCK_ALLOCATED;
}

/* Free in the sense of merging and handing out: nobody's, and with memory behind it or not. */
static inline bool block_is_idle(const block *b)
{
    return !(b->set_and_state & (BLOCK_ALLOCATED | BLOCK_PENDING));
}

static inline bool block_is_unmapped(const block *b)
{
    return b->set_and_state & BLOCK_UNMAPPED;
}

static inline bool block_is_expandable(const block *b)
{
    return b->set_and_state & BLOCK_EXPANDABLE;
}

static inline bool block_is_split(const block *b)
{
    return ((uintptr_t)b->previous | (uintptr_t)b->next) != 0; /* which one is anybody's guess */
}

/* A source of blocks; zero-initialised is empty. Sync: the owner's. */
typedef struct block_slab block_slab;
typedef struct block_pool {
    block *spare; /* recycled ones */
    size_t spare_count;
    block *fresh, *fresh_end; /* of the newest slab: never used */
    block_slab *slabs;
} block_pool;

/* Makes sure of `count` blocks to take; false: no host memory. */
__attribute__((cold)) bool block_pool_add(block_pool *pool);
static inline bool block_pool_reserve(block_pool *pool, size_t count)
{
    return pool->spare_count + (size_t)(pool->fresh_end - pool->fresh) >= count ||
           block_pool_add(pool);
}

/* One that was reserved: zeroed, but for its detail. */
static inline block *block_pool_take(block_pool *pool)
{
    block *b = pool->spare;
    if (b) {
        pool->spare = b->next;
        pool->spare_count--;
    } else {
        GMD_ASSERT_INTERNAL(pool->fresh < pool->fresh_end, "a block that is taken was reserved");
        b = pool->fresh++;
    }
    *b = (block){0};
    return b;
}

static inline void block_pool_give(block_pool *pool, block *b)
{
    b->next = pool->spare;
    pool->spare = b;
    pool->spare_count++;
}

void block_pool_release(block_pool *pool); /* frees all slabs: every block becomes invalid */
void block_pool_reset(block_pool *pool);   /* likewise, but keeps the memory of some */

#endif
