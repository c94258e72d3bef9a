/* block_map.h - address -> allocated block, O(1): open addressing with linear probing, a mixing
 * hash (device addresses have constant low bits) and deletion by shifting back, so no tombstones.
 *
 * A slot is one word, the block's address in the host's memory below 16 bits of the hash: so the
 * map can be kept at most a quarter full, where a probe hardly ever takes a second step, and the
 * block is looked at only where these bits agree. */
#ifndef GMD_BLOCK_MAP_H
#define GMD_BLOCK_MAP_H

#include "block.h"
#include "gmd_hash.h"

typedef uint64_t block_map_slot; /* 0: empty */

/* Zero-initialised is empty. Sync: the owner's. */
typedef struct block_map {
    block_map_slot *slots;
    uint64_t mask; /* slots - 1, a power of two - 1; 0 without slots */
    unsigned shift;
    uint64_t count;
} block_map;

#define BLOCK_MAP_POINTER_BITS 48 /* of the host's addresses; Linux gives none above unasked */

static inline uint64_t block_map_hash(uint64_t address)
{
    return gmd_hash_number(address >> 9); /* blocks are multiples of 512 B */
}

static inline uint64_t block_map_tag(uint64_t hash) /* in its place in a slot */
{
    return hash >> 16 << BLOCK_MAP_POINTER_BITS; /* bits 16 to 31: the index is of the topmost */
}

static inline block *block_map_block(block_map_slot slot)
{
    return (block *)(uintptr_t)(slot & (((uint64_t)1 << BLOCK_MAP_POINTER_BITS) - 1));
}

/* The block in slot `at`, 0 to mask; NULL: empty. */
static inline block *block_map_at(const block_map *map, uint64_t at)
{
    return block_map_block(map->slots[at]);
}

/* Makes room for one more entry, so that the following insert cannot fail. */
__attribute__((cold)) bool block_map_grow(block_map *map);
static inline bool block_map_reserve(block_map *map)
{
    return (map->slots && (map->count + 1) * 4 <= map->mask + 1) || block_map_grow(map);
}

void block_map_insert(block_map *map, block *b);

/* NULL: not there. */
static inline block_map_slot *block_map_find(const block_map *map, uint64_t address)
{
    uint64_t hash = block_map_hash(address), tag = block_map_tag(hash);
    if (!map->count) {
        return NULL;
    }
    for (uint64_t at = hash >> map->shift; map->slots[at]; at = (at + 1) & map->mask) {
        block_map_slot slot = map->slots[at];
        if ((slot ^ tag) >> BLOCK_MAP_POINTER_BITS == 0 &&
            block_map_block(slot)->address == address) {
            return &map->slots[at];
        }
    }
    return NULL;
}

void block_map_remove(block_map *map, const block_map_slot *slot); /* what block_map_find gave */
void block_map_release(block_map *map);

/* What of the map does not hold; NULL: all does. `visit`, which may be NULL, gets each block as
 * long as all holds. */
typedef void block_map_visit(void *context, block *b);
const char *block_map_violation(const block_map *map, block_map_visit *visit, void *context);
/* The map has no entries: it is released only where it is large. */
void block_map_shrink(block_map *map);

#endif
