/* document.h - a page while it is put together: lists of JSON that grow side by side, the columns
 * and the texts that these refer to. Written, it is the joined template of page/ with the data in
 * it: docs/reports.md has the format. */
#ifndef GMD_REPORTS_PAGE_DOCUMENT_H
#define GMD_REPORTS_PAGE_DOCUMENT_H

#include "columns.h"

#include "gmd_error.h"
#include "gmd_interned.h"
#include "gmd_json.h"

#include <stdio.h>

typedef enum document_list {
    DOCUMENT_INPUTS,
    DOCUMENT_FINDINGS,
    DOCUMENT_TABLES,
    DOCUMENT_HISTORIES,
    DOCUMENT_LISTS
} document_list;

/* A JSON array in memory, open for further elements. */
typedef struct document_part {
    char *text;
    size_t size;
    gmd_json json;
    uint32_t count;
} document_part;

typedef struct document {
    document_part lists[DOCUMENT_LISTS];
    column_set columns;
    gmd_interned strings;
    bool has_failed; /* no host memory */
} document;

gmd_status document_begin(document *d, gmd_error *error);

/* An element of a list is begun: an object, which the caller fills and ends with gmd_json_end().
 * `*number` (NULL: not asked for) is its place in the list. */
gmd_json *document_add(document *d, document_list list, uint32_t *number);

/* The number of a text among those of the page. */
uint32_t document_string(document *d, const char *text, size_t length);

/* Writes the page; nothing can be added after it. */
gmd_status document_write(document *d, const char *version, const char *title, FILE *out,
                          gmd_error *error);
void document_free(document *d);

#endif
