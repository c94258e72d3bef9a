#include "table.h"

#include "gmd_abi.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

gmd_json *table_begin(document *to, const char *id, const char *title, uint32_t input,
                      const table_column *columns, size_t count)
{
    char unique[64];
    uint32_t number;
    gmd_json *json = document_add(to, DOCUMENT_TABLES, &number);
    snprintf(unique, sizeof unique, "%s-%" PRIu32, id, number);
    gmd_json_string(json, "id", unique);
    gmd_json_string(json, "title", title);
    gmd_json_u64(json, "input", input);
    gmd_json_array(json, "columns");
    for (size_t i = 0; i < count; i++) {
        bool is_text = strcmp(columns[i].unit, "text") == 0;
        gmd_json_row(json, NULL);
        gmd_json_string(json, "name", columns[i].name);
        gmd_json_string(json, "unit", columns[i].unit);
        gmd_json_string(json, "align", is_text ? "left" : "right");
        gmd_json_end(json);
    }
    gmd_json_end(json);
    gmd_json_array(json, "rows");
    return json;
}

void table_row(gmd_json *json)
{
    gmd_json_array(json, NULL);
}

void table_row_end(gmd_json *json)
{
    gmd_json_end(json);
}

void table_end(gmd_json *json)
{
    gmd_json_end(json);
    gmd_json_end(json);
}

void table_figure(gmd_json *json, uint64_t value)
{
    if (value == GMD_STAT_UNKNOWN) {
        gmd_json_null(json, NULL);
    } else {
        gmd_json_u64(json, NULL, value);
    }
}

void table_seconds(gmd_json *json, double seconds)
{
    gmd_json_u64(json, NULL, seconds > 0 && seconds < 1e9 ? (uint64_t)(seconds * 1e9) : 0);
}
