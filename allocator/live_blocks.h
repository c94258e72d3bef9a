/* live_blocks.h - a block gets an owner, or has none any more, and the history says so. */
#ifndef GMD_LIVE_BLOCKS_H
#define GMD_LIVE_BLOCKS_H

#include "blocks.h"
#include "device_allocator.h"
#include "history_ring.h"

/* Hands out `size` bytes of b, an idle block with memory that is in no set; a spare block and a
 * place in the map of allocated blocks must be reserved. The caller has exclusive access to the
 * device. */
block *live_blocks_add(device_allocator *d, block *b, uint64_t size, uint64_t requested);

/* Frees the block of that slot: it waits where it was recorded on other streams. Likewise. */
void live_blocks_remove(device_allocator *d, block_map_slot *slot);

/* What both ways of freeing do. The caller has entered the heap, and there is room in the figures;
 * a block that was recorded on streams is in no set then. */
static inline void live_blocks_disown(const settings *s, heap *h, block_map_slot *slot, block *b)
{
    block_map_remove(&h->allocated, slot);
    bool is_done = !(b->set_and_state & BLOCK_USED);
    history_add_free(h, b, is_done);
    blocks_disown(h, b);
    if (is_done) {
        blocks_release(s, h, b);
    }
}

#endif
