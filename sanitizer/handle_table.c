#include "handle_table.h"

#include "gmd_hash.h"

#include <stdlib.h>

#define LEAST_CAPACITY 16

void handle_table_free(handle_table *t)
{
    free(t->rows);
    *t = (handle_table){0};
}

static uint32_t home_of(const handle_table *t, uint64_t key)
{
    return (uint32_t)(gmd_hash_number(key) >> 32) & (t->capacity - 1);
}

/* Where the key is, or would be put: a free row. The table has one. */
static uint32_t find(const handle_table *t, uint64_t key)
{
    uint32_t at = home_of(t, key);
    while (t->rows[at].key && t->rows[at].key != key) {
        at = (at + 1) & (t->capacity - 1);
    }
    return at;
}

void *handle_table_get(const handle_table *t, uint64_t key)
{
    return t->count ? t->rows[find(t, key)].value : NULL;
}

static bool grow(handle_table *t)
{
    handle_table larger = {.capacity = t->capacity ? 2 * t->capacity : LEAST_CAPACITY,
                           .count = t->count};
    larger.rows = calloc(larger.capacity, sizeof larger.rows[0]);
    if (!larger.rows) {
        return false;
    }
    for (uint32_t i = 0; i < t->capacity; i++) {
        if (t->rows[i].key) {
            larger.rows[find(&larger, t->rows[i].key)] = t->rows[i];
        }
    }
    free(t->rows);
    *t = larger;
    return true;
}

bool handle_table_set(handle_table *t, uint64_t key, void *value)
{
    if (2 * (t->count + 1) > t->capacity && !grow(t)) {
        return false;
    }
    handle_row *row = &t->rows[find(t, key)];
    t->count += !row->key;
    *row = (handle_row){key, value};
    return true;
}

/* Rows that were pushed on by the one that goes move back: no row is ever marked as once used. */
static void close_gap(handle_table *t, uint32_t gap)
{
    uint32_t mask = t->capacity - 1;
    for (uint32_t at = (gap + 1) & mask; t->rows[at].key; at = (at + 1) & mask) {
        uint32_t home = home_of(t, t->rows[at].key);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            t->rows[gap] = t->rows[at];
            gap = at;
        }
    }
    t->rows[gap] = (handle_row){0, NULL};
}

void *handle_table_remove(handle_table *t, uint64_t key)
{
    if (!t->count) {
        return NULL;
    }
    uint32_t at = find(t, key);
    void *value = t->rows[at].value;
    if (t->rows[at].key) {
        t->count--;
        close_gap(t, at);
    }
    return value;
}
