/* block_map.h - address -> allocated block, O(1): open addressing with linear probing, a mixing
 * hash (device addresses have constant low bits) and deletion by shifting back, so no tombstones.
 */
#ifndef GMD_BLOCK_MAP_H
#define GMD_BLOCK_MAP_H

#include "block.h"

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
bool block_map_reserve(block_map *map);
void block_map_insert(block_map *map, block *b);
block *block_map_take(block_map *map, uint64_t address); /* removes it; NULL: not there */
void block_map_release(block_map *map);

#endif
