#include "block_set.h"

#include "gmd_hash.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 1024 };

static size_t home_of(const block_set *set, uint64_t address)
{
    return (size_t)(gmd_hash_number(address) >> 20) & set->mask;
}

/* Where the block is, or would go. */
static size_t slot_of(const block_set *set, uint64_t address)
{
    size_t at = home_of(set, address);
    while (set->slots[at] && set->slots[at]->address != address) {
        at = (at + 1) & set->mask;
    }
    return at;
}

static bool grow(block_set *set)
{
    block_set larger = {.mask = set->slots ? set->mask * 2 + 1 : FIRST_SLOTS - 1,
                        .count = set->count};
    larger.slots = calloc(larger.mask + 1, sizeof(guarded_block *));
    if (!larger.slots) {
        return false;
    }
    for (size_t i = 0; set->slots && i <= set->mask; i++) {
        if (set->slots[i]) {
            larger.slots[slot_of(&larger, set->slots[i]->address)] = set->slots[i];
        }
    }
    free(set->slots);
    *set = larger;
    return true;
}

bool block_set_add(block_set *set, guarded_block *block)
{
    if ((set->count + 1) * 2 > set->mask && !grow(set)) {
        return false;
    }
    set->slots[slot_of(set, block->address)] = block;
    set->count++;
    return true;
}

guarded_block *block_set_find(const block_set *set, uint64_t address)
{
    return set->slots ? set->slots[slot_of(set, address)] : NULL;
}

/* Those that were put further on because of the one that leaves move up. */
static void close_gap(block_set *set, size_t gap)
{
    for (size_t at = (gap + 1) & set->mask; set->slots[at]; at = (at + 1) & set->mask) {
        size_t home = home_of(set, set->slots[at]->address);
        if (((at - home) & set->mask) >= ((at - gap) & set->mask)) {
            set->slots[gap] = set->slots[at];
            gap = at;
        }
    }
    set->slots[gap] = NULL;
}

guarded_block *block_set_take(block_set *set, uint64_t address)
{
    if (!set->slots) {
        return NULL;
    }
    size_t at = slot_of(set, address);
    guarded_block *block = set->slots[at];
    if (block) {
        close_gap(set, at);
        set->count--;
    }
    return block;
}

void block_set_release(block_set *set)
{
    free(set->slots);
    *set = (block_set){0};
}
