/* block_map.h - address -> allocated block, O(1): open addressing with linear probing, a mixing
 * hash (device addresses have constant low bits) and deletion by shifting back, so no tombstones.
 */
#ifndef GMD_BLOCK_MAP_H
#define GMD_BLOCK_MAP_H

#include "block.h"

/* A table is at most half full, so that probes stay within a cache line or two. A small one is at
 * most a quarter full: most probes are then the first, which the processor predicts, and it still
 * fits into the caches. */
#define BLOCK_MAP_SPARSE_SLOTS 8192

typedef struct block_map_slot {
    uint64_t address; /* 0: empty; no block has address 0 */
    block *block;
} block_map_slot;

/* Zero-initialised is empty. Sync: the owner's lock. */
typedef struct block_map {
    block_map_slot *slots;
    uint64_t mask; /* slots - 1, a power of two - 1; 0 without slots */
    unsigned shift;
    uint64_t count;
} block_map;

/* Makes room for one more entry, so that the following insert cannot fail. */
bool block_map_grow(block_map *map);
static inline bool block_map_reserve(block_map *map)
{
    uint64_t part = map->mask < BLOCK_MAP_SPARSE_SLOTS ? 4 : 2;
    return (map->slots && (map->count + 1) * part <= map->mask + 1) || block_map_grow(map);
}

void block_map_insert(block_map *map, block *b);

static inline uint64_t block_map_home(const block_map *map, uint64_t address)
{
    return address * 0x9e3779b97f4a7c15u >> map->shift;
}

/* NULL: not there. */
static inline block_map_slot *block_map_find(const block_map *map, uint64_t address)
{
    if (!map->count || !address) {
        return NULL;
    }
    for (uint64_t at = block_map_home(map, address); map->slots[at].address;
         at = (at + 1) & map->mask) {
        if (map->slots[at].address == address) {
            return &map->slots[at];
        }
    }
    return NULL;
}

void block_map_remove(block_map *map, block_map_slot *slot); /* what block_map_find gave */
void block_map_release(block_map *map);

#endif
