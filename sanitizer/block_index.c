#include "block_index.h"

#include "gmd_grow.h"
#include "gmd_hash.h"

#include <stdlib.h>

enum { SMALL_SHIFT = 15, LARGE_SHIFT = 21, FIRST_SLOTS = 256 };

#define SMALL_BYTES ((uint64_t)1 << 20) /* of memory: larger blocks are in large granules */

/* Where the granule is, or would go: an empty slot has no room for blocks. */
static size_t slot_of(const granule_map *map, uint64_t number)
{
    size_t at = (size_t)(gmd_hash_number(number) >> 32) & map->mask;
    while (map->slots[at].blocks && map->slots[at].number != number) {
        at = (at + 1) & map->mask;
    }
    return at;
}

static bool grow(granule_map *map)
{
    granule_map larger = {.mask = map->slots ? map->mask * 2 + 1 : FIRST_SLOTS - 1,
                          .count = map->count};
    larger.slots = calloc(larger.mask + 1, sizeof *larger.slots);
    if (!larger.slots) {
        return false;
    }
    for (size_t i = 0; map->slots && i <= map->mask; i++) {
        if (map->slots[i].blocks) {
            larger.slots[slot_of(&larger, map->slots[i].number)] = map->slots[i];
        }
    }
    free(map->slots);
    *map = larger;
    return true;
}

static bool add_to(granule_map *map, uint64_t number, guarded_block *b)
{
    if ((map->count + 1) * 2 > map->mask && !grow(map)) {
        return false;
    }
    granule *g = &map->slots[slot_of(map, number)];
    bool is_new = !g->blocks;
    if (!GMD_GROW(&g->blocks, &g->capacity, g->count + 1)) {
        return false;
    }
    map->count += is_new;
    g->number = number;
    g->blocks[g->count++] = b;
    return true;
}

static void remove_from(granule_map *map, uint64_t number, const guarded_block *b)
{
    granule *g = map->slots ? &map->slots[slot_of(map, number)] : NULL;
    for (size_t i = 0; g && i < g->count; i++) {
        if (g->blocks[i] == b) {
            g->blocks[i] = g->blocks[--g->count];
            return;
        }
    }
}

static granule_map *map_of(block_index *index, const guarded_block *b, unsigned *shift)
{
    bool is_small = b->total < SMALL_BYTES;
    *shift = is_small ? SMALL_SHIFT : LARGE_SHIFT;
    return is_small ? &index->small : &index->large;
}

static uint64_t last_granule(const guarded_block *b, unsigned shift)
{
    return (b->memory + (b->total ? b->total - 1 : 0)) >> shift;
}

void block_index_remove(block_index *index, const guarded_block *b)
{
    unsigned shift;
    granule_map *map = map_of(index, b, &shift);
    for (uint64_t n = b->memory >> shift; n <= last_granule(b, shift); n++) {
        remove_from(map, n, b);
    }
}

bool block_index_add(block_index *index, guarded_block *b)
{
    unsigned shift;
    granule_map *map = map_of(index, b, &shift);
    for (uint64_t n = b->memory >> shift; n <= last_granule(b, shift); n++) {
        if (!add_to(map, n, b)) {
            block_index_remove(index, b);
            return false;
        }
    }
    return true;
}

static guarded_block *find_in(const granule_map *map, uint64_t number, uint64_t address)
{
    const granule *g = map->slots ? &map->slots[slot_of(map, number)] : NULL;
    for (size_t i = 0; g && i < g->count; i++) {
        if (address - g->blocks[i]->memory < g->blocks[i]->total) {
            return g->blocks[i];
        }
    }
    return NULL;
}

guarded_block *block_index_find(const block_index *index, uint64_t address)
{
    guarded_block *b = find_in(&index->small, address >> SMALL_SHIFT, address);
    return b ? b : find_in(&index->large, address >> LARGE_SHIFT, address);
}

static void release_map(granule_map *map)
{
    for (size_t i = 0; map->slots && i <= map->mask; i++) {
        free(map->slots[i].blocks);
    }
    free(map->slots);
    *map = (granule_map){0};
}

void block_index_release(block_index *index)
{
    release_map(&index->small);
    release_map(&index->large);
}
