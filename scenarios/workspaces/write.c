/* write.c - tables of workspaces as text. */
#include "fields.h"
#include "table.h"

#include <inttypes.h>

static void put_field(const gmd_workspace_call *call, const workspace_field *field, FILE *out)
{
    gmd_workspace_call copy = *call;
    const int64_t *numbers = workspace_numbers(&copy, field);
    fprintf(out, " %s=", field->name);
    for (size_t i = 0; i < field->count; i++) {
        if (field->words) {
            fputs(field->words[numbers[i]], out);
        } else {
            fprintf(out, "%s%" PRId64, i ? "x" : "", numbers[i]);
        }
    }
}

void gmd_workspace_call_put(const gmd_workspace_call *call, FILE *out)
{
    const workspace_op_name *op = &workspace_op_names[call->op];
    fprintf(out, "%s %s", op->family, op->direction);
    for (size_t i = 0; i < WORKSPACE_FIELDS; i++) {
        if (workspace_field_belongs(&workspace_fields[i], call->op)) {
            put_field(call, &workspace_fields[i], out);
        }
    }
}

static void put_item(const gmd_workspace *item, FILE *out)
{
    gmd_workspace_call_put(&item->call, out);
    fprintf(out, " bytes=%" PRIu64, item->bytes);
    if (item->has_tried) {
        fprintf(out, " tried=%" PRIu64, item->tried);
    }
    if (item->has_reserve) {
        fprintf(out, " reserve=%" PRIu64, item->reserve);
    }
    fputs(item->is_held ? " held\n" : "\n", out);
}

bool gmd_workspaces_write(const gmd_workspaces *table, FILE *out)
{
    fputs("gmd-workspaces 1\n", out);
    for (int i = 0; i < WORKSPACE_ORIGINS; i++) {
        fprintf(out, "%s %s\n", workspace_origin_names[i], table->origins[i]);
    }
    for (size_t i = 0; i < table->count; i++) {
        put_item(&table->items[i], out);
    }
    return !ferror(out);
}
