/* inspect_json.c - what was seen inside a run, for programs. Its keys are a contract: add, never
 * rename. */
#include "gmd_inspect.h"
#include "retention_groups.h"

#include <stdlib.h>
#include <string.h>

static void write_lines(gmd_json *json, const gmd_inspection *inspection)
{
    const gmd_line_row *row;
    gmd_json_array(json, "lines");
    for (uint32_t i = 0; (row = gmd_inspection_line(inspection, i)); i++) {
        if (row->times == 0) {
            continue;
        }
        gmd_json_row(json, NULL);
        gmd_json_u64(json, "line", row->line);
        gmd_json_u64(json, "times", row->times);
        gmd_json_u64(json, "active_bytes_peak", row->active_peak);
        gmd_json_u64(json, "reserved_bytes_peak", row->reserved_peak);
        gmd_json_u64(json, "active_bytes", row->active);
        gmd_json_u64(json, "reserved_bytes", row->reserved);
        gmd_json_i64(json, "change", row->change);
        gmd_json_string(json, "code", gmd_inspection_text(inspection, row->code));
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void write_categories(gmd_json *json, const char *key, const uint64_t bytes[GMD_CATEGORIES])
{
    gmd_json_object(json, key);
    for (uint32_t i = 0; i < GMD_CATEGORIES; i++) {
        gmd_json_u64(json, gmd_category_name(i), bytes[i]);
    }
    gmd_json_end(json);
}

static void write_timeline(gmd_json *json, const gmd_inspection *inspection)
{
    const gmd_phase_row *row;
    gmd_json_array(json, "timeline");
    for (uint32_t i = 0; (row = gmd_inspection_phase(inspection, i)); i++) {
        gmd_json_row(json, NULL);
        gmd_json_string(json, "label", gmd_inspection_text(inspection, row->label));
        write_categories(json, "end", row->end);
        write_categories(json, "peak", row->peak);
        gmd_json_end(json);
    }
    gmd_json_end(json);
    if (inspection->phases_dropped) {
        gmd_json_u64(json, "timeline_dropped", inspection->phases_dropped);
    }
}

/* --- tensors ----------------------------------------------------------------------------- */

static void write_held(gmd_json *json, const char *key, const gmd_held *held)
{
    gmd_json_row(json, key);
    gmd_json_u64(json, "blocks", held->blocks);
    gmd_json_u64(json, "asked", held->asked);
    gmd_json_u64(json, "used", held->used);
    gmd_json_end(json);
}

/* "[2, 3]", the text of a shape, as numbers. */
static void write_shape(gmd_json *json, const char *text)
{
    if (!*text) {
        gmd_json_null(json, "shape");
        return;
    }
    gmd_json_array(json, "shape");
    for (const char *at = text + 1; *at && *at != ']';) {
        char *end;
        unsigned long long size = strtoull(at, &end, 10);
        if (end == at) {
            break;
        }
        gmd_json_u64(json, NULL, size);
        at = end + strspn(end, ", ");
    }
    gmd_json_end(json);
}

static void write_path(gmd_json *json, const gmd_inspection *inspection, const gmd_tensor_row *row)
{
    const gmd_step *step;
    gmd_json_array(json, "path");
    for (uint32_t i = 0; (step = gmd_inspection_step(inspection, row, i)); i++) {
        gmd_json_string(json, NULL, gmd_inspection_text(inspection, step->text));
    }
    gmd_json_end(json);
}

static void write_tensor(gmd_json *json, const gmd_inspection *inspection,
                         const gmd_tensor_row *row)
{
    char name[512];
    const gmd_tensor_row *owner =
        row->shares == GMD_INSPECT_NONE ? NULL : gmd_inspection_tensor(inspection, row->shares);
    const char *dtype = gmd_inspection_text(inspection, row->dtype);
    gmd_json_row(json, NULL);
    gmd_json_string(json, "name", gmd_inspection_path(inspection, row, false, name, sizeof name));
    gmd_json_bool(json, "is_tensor", row->is_tensor);
    write_shape(json, gmd_inspection_text(inspection, row->shape));
    gmd_json_string(json, "dtype", *dtype ? dtype : NULL);
    gmd_json_string(json, "category", gmd_category_name(row->category));
    gmd_json_string(json, "held_by", gmd_holder_name(row->holder));
    gmd_json_string(json, "shares",
                    owner ? gmd_inspection_path(inspection, owner, false, name, sizeof name)
                          : NULL);
    gmd_json_u64(json, "bytes", row->element_bytes);
    gmd_json_u64(json, "asked", owner ? 0 : row->asked);
    gmd_json_u64(json, "used", owner ? 0 : row->used);
    if (row->line) {
        gmd_json_u64(json, "line", row->line);
    } else {
        gmd_json_null(json, "line");
    }
    if (inspection->wanted & GMD_INSPECT_RETENTION) {
        write_path(json, inspection, row);
    }
    gmd_json_end(json);
}

static void write_tensors(gmd_json *json, const gmd_inspection *inspection)
{
    const gmd_tensor_row *row;
    gmd_json_string(json, "at", *inspection->taken_at ? inspection->taken_at : NULL);
    gmd_json_u64(json, "allocated", inspection->allocated);
    gmd_json_u64(json, "reserved", inspection->reserved);
    gmd_json_bool(json, "uses_are_known", inspection->uses_are_known);
    gmd_json_object(json, "held");
    for (uint32_t i = 0; i < GMD_HOLDERS; i++) {
        write_held(json, gmd_holder_name(i), &inspection->held[i]);
    }
    gmd_json_end(json);
    gmd_json_object(json, "rounding");
    write_held(json, "below_512", &inspection->small);
    write_held(json, "from_512", &inspection->large);
    gmd_json_end(json);
    gmd_json_array(json, "tensors");
    for (uint32_t i = 0; (row = gmd_inspection_tensor(inspection, i)); i++) {
        write_tensor(json, inspection, row);
    }
    gmd_json_end(json);
    if (inspection->tensors_dropped) {
        gmd_json_u64(json, "tensors_dropped", inspection->tensors_dropped);
    }
}

static void write_retention(gmd_json *json, const gmd_inspection *inspection)
{
    size_t count;
    char path[512];
    retention_group *groups = retention_groups_of(inspection, false, &count);
    gmd_json_array(json, "retention");
    for (size_t i = 0; i < count; i++) {
        const gmd_tensor_row *row = gmd_inspection_tensor(inspection, groups[i].row);
        gmd_json_row(json, NULL);
        gmd_json_string(json, "pattern", groups[i].pattern);
        gmd_json_string(json, "example",
                        row ? gmd_inspection_path(inspection, row, false, path, sizeof path)
                            : NULL);
        gmd_json_string(json, "held_by", gmd_holder_name(groups[i].holder));
        gmd_json_u64(json, "tensors", groups[i].tensors);
        gmd_json_u64(json, "used", groups[i].used);
        gmd_json_end(json);
    }
    gmd_json_end(json);
    free(groups);
}

void gmd_inspection_json(gmd_json *json, const gmd_inspection *inspection)
{
    if (!inspection) {
        return;
    }
    gmd_json_object(json, "inspection");
    gmd_json_bool(json, "complete", inspection->is_complete && !inspection->no_memory);
    if (inspection->wanted & GMD_INSPECT_LINES) {
        write_lines(json, inspection);
    }
    if (inspection->wanted & GMD_INSPECT_TIMELINE) {
        write_timeline(json, inspection);
    }
    if (inspection->wanted & (GMD_INSPECT_TENSORS | GMD_INSPECT_RETENTION)) {
        write_tensors(json, inspection);
    }
    if (inspection->wanted & GMD_INSPECT_RETENTION) {
        write_retention(json, inspection);
    }
    gmd_json_end(json);
}
