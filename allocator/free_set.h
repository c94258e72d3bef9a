/* free_set.h - the blocks of one stream and pool that are nobody's: the free ones, ordered by size,
 * then by address, and the ranges of expandable segments without memory, ordered by address.
 *
 * Best fit with ties broken by the lower address is the first block at or after (size, 0) in that
 * order. Free blocks are spread over size bins with a two-level bitmap; each bin is a block_tree,
 * with n the blocks of one bin. In the small pool a bin is one exact size. */
#ifndef GMD_FREE_SET_H
#define GMD_FREE_SET_H

#include "block_tree.h"

#define FREE_SET_BINS 4096

typedef struct heap heap;

struct free_set {
    _Alignas(64) heap *heap; /* whose stream all blocks in here belong to; blocks' tags need the
                                alignment */
    bool is_small;
    bool is_whole; /* its blocks are not split */
    uint64_t block_count;
    uint64_t summary;                    /* bit w: bitmap[w] is not 0 */
    uint64_t bitmap[FREE_SET_BINS / 64]; /* bit b: bins[b] is not empty */
    block *bins[FREE_SET_BINS];          /* roots */
    block *unmapped;                     /* root, by address; see expandable.h */
};

void free_set_insert(free_set *set, block *b);
void free_set_remove(free_set *set, block *b); /* b must be in the set */

/* The pointer to the first block of at least (size, address) in the set's order; NULL: there is
 * none. It is valid until the set changes, and takes the block out without looking for it again. */
block **free_set_find(free_set *set, uint64_t size, uint64_t address);
block *free_set_take(free_set *set, block **found);

/* The block itself; NULL: none. */
static inline block *free_set_lower_bound(free_set *set, uint64_t size, uint64_t address)
{
    block **found = free_set_find(set, size, address);
    return found ? *found : NULL;
}

/* The last block before (size, address) in the set's order; NULL: none. */
block *free_set_before(const free_set *set, uint64_t size, uint64_t address);

/* The block after `b` in the set's order; NULL: none. */
static inline block *free_set_after(free_set *set, const block *b)
{
    return free_set_lower_bound(set, b->size, b->address + 1);
}

/* Visits all free blocks in order; `visit` must not change the set. */
void free_set_each(free_set *set, void (*visit)(void *context, block *b), void *context);

/* What of the structure does not hold (order, heap property, bitmaps, count, and that its blocks
 * are those of a set); NULL: all does. `visit`, which may be NULL, gets each block with memory or
 * without, as long as all holds. What is not marked is not looked into. O(n). */
typedef void free_set_visit(void *context, block *b);
const char *free_set_violation(const free_set *set, free_set_visit *visit, void *context);

/* Likewise, and that what is not marked has no block. For tests. */
bool free_set_is_valid(const free_set *set);

#endif
