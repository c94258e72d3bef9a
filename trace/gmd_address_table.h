/* gmd_address_table.h - what lies at an address: a hash table from addresses to numbers. Whose
 * addresses they are does not matter: chosen ones take no longer than others. */
#ifndef GMD_TRACE_ADDRESS_TABLE_H
#define GMD_TRACE_ADDRESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gmd_address_slot {
    uint64_t address; /* 0: empty */
    uint32_t value;
} gmd_address_slot;

typedef struct gmd_address_table { /* open addressing; never more than half full */
    gmd_address_slot *slots;
    size_t mask;
    uint64_t key[2]; /* of the hash: drawn, so that nobody can choose addresses that collide */
} gmd_address_table;

/* Room for `entries` at a time. False: no host memory. */
bool gmd_address_table_make(gmd_address_table *table, size_t entries);
void gmd_address_table_free(gmd_address_table *table);

/* `address` is not 0. False: there is something at this address already. */
bool gmd_address_table_put(gmd_address_table *table, uint64_t address, uint32_t value);

bool gmd_address_table_has(const gmd_address_table *table, uint64_t address);

/* Removes it. False: there is nothing. */
bool gmd_address_table_take(gmd_address_table *table, uint64_t address, uint32_t *value);

#endif
