/* address_table.h - what lies at an address: a hash table from addresses to numbers. */
#ifndef GMD_TRACE_ADDRESS_TABLE_H
#define GMD_TRACE_ADDRESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct address_slot {
    uint64_t address; /* 0: empty */
    uint32_t value;
} address_slot;

typedef struct address_table { /* open addressing; never more than half full */
    address_slot *slots;
    size_t mask;
    unsigned shift;
} address_table;

/* Room for `entries` at a time. False: no host memory. */
bool address_table_make(address_table *table, size_t entries);
void address_table_free(address_table *table);

/* `address` is not 0. False: there is something at this address already. */
bool address_table_put(address_table *table, uint64_t address, uint32_t value);

/* Removes it. False: there is nothing. */
bool address_table_take(address_table *table, uint64_t address, uint32_t *value);

#endif
