#include "history_ring.h"

#include <stdlib.h>

enum { FIRST_ENTRIES = 1024 };

static size_t ring_bytes(uint64_t entries)
{
    return sizeof(history_ring) + entries * sizeof(history_entry);
}

static uint64_t mask_for(uint64_t entries)
{
    uint64_t mask = FIRST_ENTRIES - 1;
    while (mask + 1 < entries) {
        mask = mask * 2 + 1;
    }
    return mask;
}

history_ring *history_ring_create(uint64_t max_entries, uint32_t epoch)
{
    history_ring *r = malloc(ring_bytes(FIRST_ENTRIES));
    if (r) {
        *r = (history_ring){
            .mask = FIRST_ENTRIES - 1, .most_mask = mask_for(max_entries), .epoch = epoch};
    }
    return r;
}

/* Rings begin small, for most streams have few events. When there is no memory to grow, the ring
 * stays as it is and fewer events are kept. Not GMD_GROW: the entries follow their header, and are
 * a power of two. */
void history_turn(heap *h)
{
    history_ring *r = h->history;
    uint64_t entries = r->mask + 1;
    if (r->count != entries || r->mask == r->most_mask) {
        return;
    }
    history_ring *larger = realloc(r, ring_bytes(entries * 2));
    if (larger) {
        larger->mask = entries * 2 - 1;
        h->history = larger;
    } else {
        r->most_mask = r->mask;
    }
}
