#include "block_map.h"

#include <stdlib.h>

static uint64_t home_of(const block_map *map, uint64_t address)
{
    return address * 0x9e3779b97f4a7c15u >> map->shift;
}

static bool grow(block_map *map)
{
    unsigned bits = map->slots ? 64 - map->shift + 1 : 10;
    block_map larger = {.slots = calloc((size_t)1 << bits, sizeof *larger.slots),
                        .mask = ((uint64_t)1 << bits) - 1,
                        .shift = 64 - bits};
    if (!larger.slots) {
        return false;
    }
    for (uint64_t i = 0; map->slots && i <= map->mask; i++) {
        if (map->slots[i].address) {
            block_map_insert(&larger, map->slots[i].block);
        }
    }
    free(map->slots);
    *map = larger;
    return true;
}

bool block_map_reserve(block_map *map)
{
    /* At most half full: probes stay within a cache line or two. */
    return (map->slots && (map->count + 1) * 2 <= map->mask + 1) || grow(map);
}

void block_map_insert(block_map *map, block *b)
{
    uint64_t at = home_of(map, b->address);
    while (map->slots[at].address) {
        at = (at + 1) & map->mask;
    }
    map->slots[at] = (block_map_slot){b->address, b};
    map->count++;
}

/* Moves later entries of the probe run back over the hole, so that no lookup is cut short. */
static void close_hole(block_map *map, uint64_t hole)
{
    for (uint64_t at = (hole + 1) & map->mask; map->slots[at].address; at = (at + 1) & map->mask) {
        uint64_t home = home_of(map, map->slots[at].address);
        if (((at - home) & map->mask) >= ((at - hole) & map->mask)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole].address = 0;
}

block *block_map_take(block_map *map, uint64_t address)
{
    if (!map->slots || !address) {
        return NULL;
    }
    for (uint64_t at = home_of(map, address); map->slots[at].address; at = (at + 1) & map->mask) {
        if (map->slots[at].address == address) {
            block *b = map->slots[at].block;
            close_hole(map, at);
            map->count--;
            return b;
        }
    }
    return NULL;
}

void block_map_release(block_map *map)
{
    free(map->slots);
    *map = (block_map){0};
}
