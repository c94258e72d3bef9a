/* address_map.h - the live allocations of all devices, ordered by address.
 *
 * A treap over a pool of nodes (indices, so that the pool can move when it grows). Every node knows
 * the free gap below it and the largest gap of its subtree: lookup, insertion, removal and the
 * lowest gap that fits are O(log n) expected. Priorities are a hash of a counter: deterministic. A
 * last node at the end of the address space owns the last gap, so that every gap has an owner. */
#ifndef GMD_SIM_ADDRESS_MAP_H
#define GMD_SIM_ADDRESS_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_SPACE_END ((uint64_t)1 << 47)

typedef struct allocation {
    uint64_t address;
    uint64_t size;        /* as asked for */
    uint64_t span;        /* address space taken */
    uint64_t gap;         /* free addresses between the allocation below and this one */
    uint64_t largest_gap; /* of the subtree */
    unsigned char *data;  /* host memory behind it, NULL when unbacked */
    uint32_t left, right; /* 0: none */
    uint32_t priority;
    uint32_t pool_block;  /* memory of a stream-ordered pool: its number there */
    uint32_t reservation; /* a range of cuMemAddressReserve: its number; 0: memory of cudaMalloc */
    int device;
    uint64_t buffer_id; /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
} allocation;

bool map_init(void);  /* false: the host has no memory */
void map_reset(void); /* empties it */

/* [address, address + span) is free. `span` > 0. */
bool map_is_free(uint64_t address, uint64_t span);

/* Adds an allocation at a free range; NULL: the host has no memory. The result, like every pointer
 * from here, is valid until the next insertion. */
allocation *map_insert(uint64_t address, uint64_t span);

void map_remove(uint64_t address); /* an allocation begins there */

/* Cuts the allocation at `address` in two, the upper one beginning at `middle`: with the same facts
 * but its data and size, which are for the rest. NULL: the host has no memory. */
allocation *map_split(uint64_t address, uint64_t middle);
/* The allocation at `address` and the one that begins where it ends become one. */
allocation *map_join(uint64_t address);

allocation *map_find(uint64_t address); /* the one that contains it, by span; NULL: none */
/* The one whose size holds the whole range; NULL: none does. */
allocation *map_find_range(uint64_t address, uint64_t size);

/* The first allocation at or above `address`: the end marker, whose span is 0, when there is none.
 */
allocation *map_at_or_above(uint64_t address);

/* Likewise above `address`, only those with a gap of at least `size` below them; NULL: none. */
allocation *map_next_gap(uint64_t address, uint64_t size);

/* What does not hold of the map; NULL: all does. `visit`, which may be NULL, gets each allocation
 * in the order of addresses, as long as all holds. */
typedef void map_visit(void *context, const allocation *a);
const char *map_violation(map_visit *visit, void *context);

#endif
