#include "live_blocks.h"

#include "pending.h"

block *live_blocks_add(device_allocator *d, block *b, uint64_t size, uint64_t requested)
{
    heap *h = block_set(b)->heap;
    blocks_make_room_to_occupy(d->settings, &d->stats, h, b, size, requested);
    b = blocks_occupy(d->settings, h, b, size, requested);
    if (b->size >= d->settings->max_split_bytes) {
        statistics_raise_oversize(&d->stats, FIGURE_OVERSIZE_ALLOCATION);
    }
    history_add_alloc(h, b);
    return b;
}

void live_blocks_remove(device_allocator *d, block_map_slot *slot)
{
    block *b = block_map_block(*slot);
    heap *h = block_set(b)->heap;
    if (b->size >= d->settings->max_split_bytes) {
        statistics_lower_oversize(&d->stats, FIGURE_OVERSIZE_ALLOCATION);
    }
    blocks_make_room_to_release(&d->stats, h, b);
    live_blocks_disown(d->settings, h, slot, b);
    if (b->set_and_state & BLOCK_USED) {
        pending_add(d, b);
    }
}
