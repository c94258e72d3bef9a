#include "segment_stacks.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

/* The number of those that begin below an address. */
static size_t count_below(const segment_stacks *all, uint64_t address)
{
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all->items[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void segment_stacks_add(segment_stacks *all, uint64_t address, uint32_t stack)
{
    if (!GMD_GROW(&all->items, &all->capacity, all->count + 1)) {
        return;
    }
    size_t at = count_below(all, address);
    memmove(&all->items[at + 1], &all->items[at], (all->count - at) * sizeof *all->items);
    all->items[at] = (segment_stack){address, stack};
    all->count++;
}

void segment_stacks_remove(segment_stacks *all, uint64_t address, uint64_t size)
{
    size_t first = count_below(all, address), end = count_below(all, address + size);
    if (first < end) {
        memmove(&all->items[first], &all->items[end], (all->count - end) * sizeof *all->items);
        all->count -= end - first;
    }
}

uint32_t segment_stacks_at(const segment_stacks *all, uint64_t address)
{
    size_t at = count_below(all, address);
    return at < all->count && all->items[at].address == address ? all->items[at].stack : 0;
}

void segment_stacks_release(segment_stacks *all)
{
    free(all->items);
    *all = (segment_stacks){0};
}
