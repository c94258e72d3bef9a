#include "gmd_address_table.h"
#include "gmd_keyed_hash.h"

#include <stdlib.h>

bool gmd_address_table_make(gmd_address_table *table, size_t entries)
{
    unsigned bits = 4;
    while (((size_t)1 << bits) < entries * 2) {
        bits++;
    }
    table->mask = ((size_t)1 << bits) - 1;
    gmd_hash_key key = gmd_hash_key_draw();
    table->key[0] = key.first;
    table->key[1] = key.second;
    table->slots = calloc(table->mask + 1, sizeof *table->slots);
    return table->slots != NULL;
}

static size_t home_of(const gmd_address_table *table, uint64_t address)
{
    gmd_hash_key key = {table->key[0], table->key[1]};
    return (size_t)gmd_hash_keyed(key, &address, sizeof address) & table->mask;
}

/* The slot with the address, or the free one that ends the search for it. */
static size_t slot_for(const gmd_address_table *table, uint64_t address)
{
    size_t at = home_of(table, address);
    while (table->slots[at].address && table->slots[at].address != address) {
        at = (at + 1) & table->mask;
    }
    return at;
}

bool gmd_address_table_has(const gmd_address_table *table, uint64_t address)
{
    return table->slots[slot_for(table, address)].address != 0;
}

bool gmd_address_table_put(gmd_address_table *table, uint64_t address, uint32_t value)
{
    size_t at = slot_for(table, address);
    if (table->slots[at].address) {
        return false;
    }
    table->slots[at] = (gmd_address_slot){address, value};
    return true;
}

bool gmd_address_table_take(gmd_address_table *table, uint64_t address, uint32_t *value)
{
    size_t at = slot_for(table, address);
    if (!table->slots[at].address) {
        return false;
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

void gmd_address_table_free(gmd_address_table *table)
{
    free(table->slots);
    *table = (gmd_address_table){0};
}
