/* handle_table.h - a table from 64-bit numbers other than 0 (handles, addresses) to pointers: open
 * addressing, O(1). */
#ifndef HANDLE_TABLE_H
#define HANDLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct handle_row {
    uint64_t key; /* 0: free */
    void *value;
} handle_row;

typedef struct handle_table { /* zero-initialised is empty */
    handle_row *rows;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t count;
} handle_table;

void handle_table_free(handle_table *t); /* the values are the caller's */

/* NULL: there is none. */
void *handle_table_get(const handle_table *t, uint64_t key);

/* In place of what there is. False: the host has no memory, and nothing has changed. */
bool handle_table_set(handle_table *t, uint64_t key, void *value);

/* What was there; NULL: nothing. */
void *handle_table_remove(handle_table *t, uint64_t key);

#endif
