#include "block_map.h"

#include <stdlib.h>

enum { FIRST_BITS = 6, SMALL_SLOTS = 1024 };

bool block_map_grow(block_map *map)
{
    unsigned bits = map->slots ? 64 - map->shift + 1 : FIRST_BITS;
    block_map larger = {.slots = calloc((size_t)1 << bits, sizeof *larger.slots),
                        .mask = ((uint64_t)1 << bits) - 1,
                        .shift = 64 - bits};
    if (!larger.slots) {
        return false;
    }
    for (uint64_t i = 0; map->slots && i <= map->mask; i++) {
        if (map->slots[i]) {
            block_map_insert(&larger, block_map_at(map, i));
        }
    }
    free(map->slots);
    *map = larger;
    return true;
}

void block_map_insert(block_map *map, block *b)
{
    uint64_t hash = block_map_hash(b->address), at = hash >> map->shift;
    GMD_ASSERT_INTERNAL(map->slots && map->count < map->mask, "room in the map was reserved");
    GMD_ASSERT_INTERNAL(!block_map_find(map, b->address), "a block is in the map once");
    while (map->slots[at]) {
        at = (at + 1) & map->mask;
    }
    map->slots[at] = block_map_tag(hash) | (uint64_t)(uintptr_t)b;
    map->count++;
}

/* Moves later entries of the probe run back over the hole, so that no lookup is cut short. */
void block_map_remove(block_map *map, const block_map_slot *slot)
{
    uint64_t hole = (uint64_t)(slot - map->slots);
    GMD_ASSERT_INTERNAL(hole <= map->mask && *slot, "what is removed is in the map");
    for (uint64_t at = (hole + 1) & map->mask; map->slots[at]; at = (at + 1) & map->mask) {
        uint64_t home = block_map_hash(block_map_at(map, at)->address) >> map->shift;
        if (((at - home) & map->mask) >= ((at - hole) & map->mask)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole] = 0;
    map->count--;
}

void block_map_release(block_map *map)
{
    free(map->slots);
    *map = (block_map){0};
}

void block_map_shrink(block_map *map)
{
    if (map->mask >= SMALL_SLOTS) {
        block_map_release(map);
    }
}

const char *block_map_violation(const block_map *map, block_map_visit *visit, void *context)
{
    const block_map_slot *slots = map->slots;
    const uint64_t end = slots ? map->mask + 1 : 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < end; i++) {
        if (!slots[i]) {
            continue;
        }
        block *b = block_map_at(map, i);
        if (block_map_find(map, b->address) != &slots[i]) {
            return "the map finds each of its blocks by its address";
        }
        count++;
        if (visit) {
            visit(context, b);
        }
    }
    return count == map->count ? NULL : "the map counts its blocks";
}
