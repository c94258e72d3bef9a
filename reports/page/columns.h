/* columns.h - tables of whole numbers, column by column, coded in few bytes: what a browser decodes
 * into typed arrays. */
#ifndef GMD_REPORTS_PAGE_COLUMNS_H
#define GMD_REPORTS_PAGE_COLUMNS_H

#include "gmd_json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Larger values become this one: with it, the zigzag of a difference is exact in a double. */
#define COLUMN_MOST (((uint64_t)1 << 52) - 1)

enum { COLUMN_NAME = 32 };

typedef enum column_coding {
    COLUMN_VARINT, /* LEB128 of each value */
    COLUMN_DELTA,  /* LEB128 of the zigzag of the difference to the value before, at first to 0 */
} column_coding;

typedef struct column {
    char name[COLUMN_NAME];
    uint64_t last, most; /* values */
    size_t count;
    uint8_t *bytes;
    size_t size, capacity;
    uint8_t coding; /* column_coding */
} column;

typedef struct column_set { /* zero-initialised is empty */
    column *items;
    size_t count, capacity;
    bool has_failed; /* no host memory: what was put since is not there */
} column_set;

/* The number of a new column, which is named by both parts. */
size_t columns_new(column_set *c, const char *prefix, const char *name, column_coding coding);
void columns_put(column_set *c, size_t index, uint64_t value);

/* The directory: an object that says where in the sections each column lies, and how. */
void columns_json(const column_set *c, gmd_json *json, const char *key);

void columns_free(column_set *c);

#endif
