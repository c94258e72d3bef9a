#include "comparison.h"

#include "findings.h"
#include "table.h"

#include "gmd_comparison.h"

#include <stdlib.h>

enum { MOST_LINES = 2000 };

typedef struct compared {
    const gmd_facts *facts[GMD_COMPARED_MAX];
    uint32_t moments[GMD_COMPARED_MAX];
    const char *names[GMD_COMPARED_MAX];
    size_t count;
} compared;

static void list_compared(const struct gmd_page *page, compared *c)
{
    for (size_t i = 0; i < page->job_count && c->count < GMD_COMPARED_MAX; i++) {
        const gmd_diagnosis *d = page->jobs[i].diagnosis;
        if (d->device_count) {
            c->facts[c->count] = &d->devices[0].facts;
            c->moments[c->count] = d->devices[0].facts.recording.peak.allocated_at;
            c->names[c->count++] = page->jobs[i].name;
        }
    }
}

/* Columns: the line, each of them, and by how much they differ. */
static void put_table(struct gmd_page *page, const compared *c, const gmd_comparison *lines)
{
    table_column columns[GMD_COMPARED_MAX + 2] = {{"Line", "text"}};
    char text[PLACE_TEXT];
    for (size_t i = 0; i < c->count; i++) {
        columns[i + 1] = (table_column){c->names[i], "B"};
    }
    columns[c->count + 1] = (table_column){"Difference", "B"};
    gmd_json *json = table_begin(&page->document, "difference", "At the peaks, by line", 0, columns,
                                 c->count + 2);
    for (size_t i = 0; i < lines->row_count && i < MOST_LINES; i++) {
        const gmd_compared_row *row = &lines->rows[i];
        table_row(json);
        gmd_json_string(json, NULL, place_text(row->named_by, (uint32_t)row->key, text));
        for (size_t k = 0; k < c->count; k++) {
            gmd_json_u64(json, NULL, row->bytes[k]);
        }
        if (c->count == 2) {
            gmd_json_i64(json, NULL, (int64_t)(row->bytes[1] - row->bytes[0]));
        } else {
            gmd_json_u64(json, NULL, gmd_compared_spread(lines, row));
        }
        table_row_end(json);
    }
    table_end(json);
}

gmd_status comparison_add(struct gmd_page *page, gmd_error *error)
{
    compared c = {.count = 0};
    gmd_comparison lines;
    list_compared(page, &c);
    if (c.count < 2 || page->has_diff) {
        return GMD_OK;
    }
    gmd_status status =
        gmd_comparison_make(&lines, c.facts, c.moments, c.count, GMD_BY_LINE, error);
    if (status == GMD_OK) {
        put_table(page, &c, &lines);
        gmd_comparison_free(&lines);
    }
    return status;
}
