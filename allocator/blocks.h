/* blocks.h - what happens to single blocks within a heap: found, split, handed out, freed, merged,
 * and counted. Nothing here calls CUDA or allocates host memory. Sync: the caller has entered the
 * heap, or has exclusive access to the device. */
#ifndef GMD_BLOCKS_H
#define GMD_BLOCKS_H

#include "heap.h"
#include "settings.h"

/* The free block that best fit gives for `size` bytes, for free_set_take; NULL: none that may be
 * used for it. */
block **blocks_find(const settings *s, free_set *set, uint64_t size);

/* Whether handing out `size` bytes of b splits it. */
bool blocks_should_split(const settings *s, const block *b, uint64_t size);

/* Whether what handing out and freeing raise fits under the heap's ceilings (statistics.h). */
bool blocks_have_room_to_occupy(const settings *s, const heap *h, const block *b, uint64_t size,
                                uint64_t requested);
bool blocks_have_room_to_release(const heap *h, const block *b);

/* Moves peaks so that it fits, and has the heap share in them. The caller has exclusive access to
 * the device. */
void blocks_make_room_to_occupy(const settings *s, statistics *all, heap *h, const block *b,
                                uint64_t size, uint64_t requested);
void blocks_make_room_to_release(statistics *all, heap *h, const block *b);

/* Hands out `size` bytes of b, which is in no set any more; a spare block and a place in the map
 * of allocated blocks must be reserved, and there must be room. */
block *blocks_occupy(const settings *s, heap *h, block *b, uint64_t size, uint64_t requested);

/* An allocated block, already out of the map, is its owner's no more... */
void blocks_disown(heap *h, block *b);
/* ...and once no work uses it, it merges with idle neighbours and can be handed out. */
void blocks_release(const settings *s, heap *h, block *b);

/* Puts an idle block into its set, and takes it out. */
void blocks_insert(const settings *s, block *b);
void blocks_remove(block *b);

/* `b` takes in an idle neighbour that is mapped or unmapped as b is, and which ceases to exist.
 * Gives the bytes that it gained. b is in no set. */
uint64_t blocks_merge(heap *h, block *b, block *neighbour);

#endif
