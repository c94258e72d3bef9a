/* table.h - tables of a page: columns with a unit each, and rows of numbers and texts. */
#ifndef GMD_REPORTS_PAGE_TABLE_H
#define GMD_REPORTS_PAGE_TABLE_H

#include "document.h"

typedef struct table_column {
    const char *name;
    const char *unit; /* "text", "B", "ns", "count" or "ratio" */
} table_column;

/* Opens a table: the caller adds rows, arrays of as many values as there are columns, and ends it.
 * `id`: within the page it is made unique. */
gmd_json *table_begin(document *to, const char *id, const char *title, uint32_t input,
                      const table_column *columns, size_t count);
void table_row(gmd_json *json);
void table_row_end(gmd_json *json);
void table_end(gmd_json *json);

#define TABLE_COLUMNS(list) list, sizeof(list) / sizeof *(list)

/* A figure that may be GMD_STAT_UNKNOWN; seconds, in nanoseconds. */
void table_figure(gmd_json *json, uint64_t value);
void table_seconds(gmd_json *json, double seconds);

#endif
