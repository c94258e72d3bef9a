#include "address_table.h"
#include "gmd_hash.h"

#include <stdlib.h>

bool address_table_make(address_table *table, size_t entries)
{
    unsigned bits = 4;
    while (((size_t)1 << bits) < entries * 2) {
        bits++;
    }
    table->mask = ((size_t)1 << bits) - 1;
    table->shift = 64 - bits;
    table->slots = calloc(table->mask + 1, sizeof *table->slots);
    return table->slots != NULL;
}

static size_t home_of(const address_table *table, uint64_t address)
{
    return (size_t)(gmd_hash_number(address) >> table->shift);
}

bool address_table_put(address_table *table, uint64_t address, uint32_t value)
{
    size_t at = home_of(table, address);
    for (; table->slots[at].address; at = (at + 1) & table->mask) {
        if (table->slots[at].address == address) {
            return false;
        }
    }
    table->slots[at] = (address_slot){address, value};
    return true;
}

bool address_table_take(address_table *table, uint64_t address, uint32_t *value)
{
    size_t at = home_of(table, address);
    for (; table->slots[at].address != address; at = (at + 1) & table->mask) {
        if (!table->slots[at].address) {
            return false;
        }
    }
    *value = table->slots[at].value;
    size_t hole = at;
    for (at = (at + 1) & table->mask; table->slots[at].address; at = (at + 1) & table->mask) {
        size_t home = home_of(table, table->slots[at].address);
        if (((at - home) & table->mask) >= ((at - hole) & table->mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole].address = 0;
    return true;
}

void address_table_free(address_table *table)
{
    free(table->slots);
    *table = (address_table){0};
}
