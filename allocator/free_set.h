/* free_set.h - the free blocks of one stream and pool, ordered by size, then by address.
 *
 * Best fit with ties broken by the lower address is the first block at or after (size, 0) in that
 * order. Blocks are spread over size bins with a two-level bitmap; each bin is a treap that lives
 * in the blocks themselves, its priorities a hash of the address: deterministic, no allocation,
 * expected O(log n) with n the blocks of one bin. In the small pool a bin is one exact size. */
#ifndef GMD_FREE_SET_H
#define GMD_FREE_SET_H

#include "block.h"
#include "gmd_cuda.h"

#define FREE_SET_BINS 4096

struct free_set {
    cudaStream_t stream; /* the allocation stream of all blocks in here */
    free_set *next;      /* the set of the next higher stream of the same pool */
    uint64_t block_count;
    bool is_small;
    uint64_t summary;                    /* bit w: bitmap[w] is not 0 */
    uint64_t bitmap[FREE_SET_BINS / 64]; /* bit b: bins[b] is not empty */
    block *bins[FREE_SET_BINS];          /* roots */
};

void free_set_insert(free_set *set, block *b);
void free_set_remove(free_set *set, block *b); /* b must be in the set */

/* The first block of at least (size, address) in the set's order; NULL: none. */
block *free_set_lower_bound(const free_set *set, uint64_t size, uint64_t address);

/* Visits all blocks in order; `visit` must not change the set. */
void free_set_each(const free_set *set, void (*visit)(void *context, block *b), void *context);

/* The whole structure is consistent: order, heap property, bitmaps, count. For tests; O(n). */
bool free_set_is_valid(const free_set *set);

#endif
