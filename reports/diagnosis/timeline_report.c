#include "gmd_timeline_report.h"

#include "curve.h"
#include "gmd_json.h"
#include "gmd_min.h"
#include "gmd_report_text.h"
#include "gmd_size.h"

#include <stdlib.h>
#include <string.h>

/* Amounts of single categories may pass below 0: then there are none. */
static uint64_t bytes_of(const gmd_timeline_row *row, uint32_t category)
{
    return row->bytes[category] > 0 ? (uint64_t)row->bytes[category] : 0;
}

static const gmd_timeline_row *row_at(const gmd_memory_timeline *t, size_t index)
{
    static const gmd_timeline_row none;
    return index < t->count ? &t->rows[index] : &none;
}

static size_t end_of(const gmd_memory_timeline *t)
{
    return t->count ? t->count - 1 : 0;
}

/* --- text ------------------------------------------------------------------------------------ */

static void put_curve(const gmd_memory_timeline *t, const gmd_diagnosis_view *view, FILE *out)
{
    uint64_t values[CURVE_MOST_CELLS] = {0}, highest = 0;
    int cells = curve_cells(view);
    for (size_t i = 0; cells && i < t->count; i++) {
        uint64_t bytes = gmd_timeline_allocated(&t->rows[i]);
        uint64_t *value = &values[i * (size_t)cells / t->count];
        *value = gmd_max(bytes, *value);
        highest = gmd_max(bytes, highest);
    }
    if (cells && t->count) {
        curve_put_row("allocated", values, cells, highest, view, out);
        fputc('\n', out);
    }
}

typedef struct category_bytes {
    uint32_t category;
    uint64_t bytes;
} category_bytes;

static int compare_bytes(const void *a, const void *b)
{
    const category_bytes *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return (x->category > y->category) - (x->category < y->category);
}

static void put_moment(const gmd_memory_timeline *t, const char *title, size_t index, FILE *out)
{
    char bytes[24], count[32];
    category_bytes list[GMD_TIMELINE_CATEGORIES];
    const gmd_timeline_row *row = row_at(t, index);
    fprintf(out, "%s: %s allocated, time %s of ", title,
            gmd_format_size(gmd_timeline_allocated(row), bytes),
            gmd_format_count(t->count ? index + 1 : 0, count));
    fprintf(out, "%s\n", gmd_format_count(t->count, count));
    for (uint32_t i = 0; i < GMD_TIMELINE_CATEGORIES; i++) {
        list[i] = (category_bytes){i, bytes_of(row, i)};
    }
    qsort(list, GMD_TIMELINE_CATEGORIES, sizeof *list, compare_bytes);
    for (size_t i = 0; i < GMD_TIMELINE_CATEGORIES && list[i].bytes; i++) {
        fprintf(out, "  %10s  %s\n", gmd_format_size(list[i].bytes, bytes),
                gmd_category_name(list[i].category));
    }
}

gmd_status gmd_timeline_write_text(const gmd_memory_timeline *timeline, const char *name,
                                   const gmd_diagnosis_view *view, FILE *out, gmd_error *error)
{
    gmd_utf8_put_line(name, out);
    fputs(": memory timeline of torch.profiler\n\n", out);
    put_curve(timeline, view, out);
    put_moment(timeline, "Peak", gmd_timeline_peak(timeline), out);
    put_moment(timeline, "End", end_of(timeline), out);
    return gmd_finish_writing(out, "the diagnosis", error);
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void put_json_moment(gmd_json *json, const char *key, const gmd_memory_timeline *t,
                            size_t index)
{
    const gmd_timeline_row *row = row_at(t, index);
    gmd_json_object(json, key);
    gmd_json_u64(json, "allocated", gmd_timeline_allocated(row));
    gmd_json_u64(json, "active", gmd_timeline_allocated(row));
    gmd_json_null(json, "reserved");
    gmd_json_u64(json, "event", index);
    gmd_json_row(json, "categories");
    for (uint32_t i = 0; i < GMD_TIMELINE_CATEGORIES; i++) {
        if (bytes_of(row, i)) {
            gmd_json_u64(json, gmd_category_name(i), bytes_of(row, i));
        }
    }
    gmd_json_end(json);
    gmd_json_array(json, "holders");
    gmd_json_end(json);
    gmd_json_end(json);
}

gmd_status gmd_timeline_write_json(const gmd_memory_timeline *timeline, const char *name,
                                   const char *version, FILE *out, gmd_error *error)
{
    gmd_json json;
    gmd_json_start(&json, out);
    gmd_json_object(&json, NULL);
    gmd_json_string(&json, "gmd", version);
    gmd_json_string(&json, "command", "diagnose");
    gmd_json_string(&json, "verdict", "pass");
    gmd_json_string(&json, "snapshot", name);
    gmd_json_string(&json, "recorder", "torch.profiler");
    gmd_json_u64(&json, "events", timeline->count);
    gmd_json_array(&json, "findings");
    gmd_json_end(&json);
    put_json_moment(&json, "peak", timeline, gmd_timeline_peak(timeline));
    put_json_moment(&json, "end", timeline, end_of(timeline));
    gmd_json_u64(&json, "oom_count", 0);
    gmd_json_end(&json);
    gmd_json_finish(&json);
    return gmd_finish_writing(out, "the JSON report", error);
}

/* --- one side of a diff ---------------------------------------------------------------------- */

gmd_status gmd_timeline_compared(gmd_diff_input *input, const gmd_memory_timeline *timeline,
                                 const char *name, bool is_of_end, gmd_error *error)
{
    const gmd_timeline_row *row =
        row_at(timeline, is_of_end ? end_of(timeline) : gmd_timeline_peak(timeline));
    bool has_memory = true;
    *input = (gmd_diff_input){.name = name};
    for (uint32_t i = 0; has_memory && i < GMD_TIMELINE_CATEGORIES; i++) {
        has_memory = !bytes_of(row, i) || gmd_diff_input_add_category(input, i, bytes_of(row, i));
    }
    gmd_status status = has_memory
                            ? gmd_diff_input_finish(input, gmd_timeline_allocated(row), error)
                            : gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", name);
    if (status != GMD_OK) {
        gmd_diff_input_free(input);
    }
    return status;
}
