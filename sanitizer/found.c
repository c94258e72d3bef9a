#define _GNU_SOURCE
#include "guard_state.h"

static bool is_in(const guarded_block *b, uint64_t address)
{
    return b && address - b->memory < b->total;
}

static guarded_block *find_held(const device_part *d, uint64_t address)
{
    for (uint32_t i = 0; i < d->gathered.count; i++) {
        if (is_in(d->gathered.blocks[i], address)) {
            return d->gathered.blocks[i];
        }
    }
    guarded_block *b = d->held.oldest;
    while (b && !is_in(b, address)) {
        b = b->next;
    }
    return b;
}

/* Only reports ask, then: each free and allocation is spared the entry into an index. */
static guarded_block *find_one_by_one(const guard *g, uint64_t address)
{
    for (size_t i = 0; g->live.slots && i <= g->live.mask; i++) {
        if (is_in(g->live.slots[i], address)) {
            return g->live.slots[i];
        }
    }
    guarded_block *found = NULL;
    for (int device = 0; device < g->device_count && !found; device++) {
        found = find_held(&g->devices[device], address);
    }
    return found;
}

guarded_block *guard_find(const guard *g, uint64_t address)
{
    return g->keeps_index ? block_index_find(&g->index, address) : find_one_by_one(g, address);
}
