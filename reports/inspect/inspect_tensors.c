/* inspect_tensors.c - the tensors that are alive, and who holds them, for people. */
#include "gmd_fitted_table.h"
#include "gmd_inspect.h"
#include "gmd_min.h"
#include "gmd_report_text.h"
#include "inspect_words.h"
#include "retention_groups.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_TENSORS = 40, SHOWN_GROUPS = 25 };

static const char *bold(gmd_terminal terminal)
{
    return terminal.color ? "\033[1m" : "";
}

static const char *plain(gmd_terminal terminal)
{
    return terminal.color ? "\033[0m" : "";
}

static void put_moment(const gmd_inspection *inspection, FILE *out)
{
    if (*inspection->taken_at) {
        fputs("at the end of the phase ", out);
        gmd_utf8_put_line(inspection->taken_at, out);
    } else {
        fputs("at the end of the script", out);
    }
}

/* --- tensors ----------------------------------------------------------------------------- */

/* How much of the names is the same up to a dot. */
static size_t common_module(const char *name, const char *owner)
{
    size_t module = 0;
    for (size_t i = 0; name[i] && name[i] == owner[i]; i++) {
        module = name[i] == '.' ? i + 1 : module;
    }
    return module;
}

/* "weight_hh_l0(->weight_ih_l0)", as pytorch_memlab writes a shared storage. */
static void name_of(const gmd_inspection *inspection, const retention_group *group, char *text,
                    size_t size)
{
    char owner[160];
    const gmd_tensor_row *row = gmd_inspection_tensor(inspection, group->row), *shared = NULL;
    retention_group_name(inspection, group, text, size);
    if (row && row->shares != GMD_INSPECT_NONE) {
        shared = gmd_inspection_tensor(inspection, row->shares);
    }
    if (shared) {
        size_t used = strlen(text);
        gmd_inspection_path(inspection, shared, false, owner, sizeof owner);
        snprintf(text + used, size - used, "(->%s)", owner + common_module(text, owner));
    }
}

/* Long names keep both ends; --json has them in full. */
static const gmd_fitted_column tensor_columns[] = {
    {.heading = "Element type", .is_text = true, .least = 33},
    {.heading = "Size"},
    {.heading = "dtype", .leaves = 2},
    {.heading = "count"},
    {.heading = "Used MEM"},
    {.heading = "rounding", .leaves = 1},
    {.heading = "line", .leaves = 3},
    {.heading = "category", .is_text = true, .leaves = 4},
};
enum { TENSOR_COLUMNS = sizeof tensor_columns / sizeof *tensor_columns };

static bool add_tensor(gmd_fitted_table *table, const gmd_inspection *inspection,
                       const retention_group *group)
{
    char name[700], count[32] = "", used[24], more[24] = "", line[16] = "";
    const gmd_tensor_row *row = gmd_inspection_tensor(inspection, group->row);
    if (!row) {
        return true;
    }
    name_of(inspection, group, name, sizeof name);
    if (group->tensors > 1) {
        gmd_format_count(group->tensors, count);
    }
    if (group->line) {
        snprintf(line, sizeof line, "%u", group->line);
    }
    if (group->rounding) {
        format_short_size(group->rounding, more);
    }
    const char *const cells[TENSOR_COLUMNS] = {name,
                                               gmd_inspection_text(inspection, row->shape),
                                               gmd_inspection_text(inspection, row->dtype),
                                               count,
                                               format_short_size(group->used, used),
                                               more,
                                               line,
                                               category_heading(row->category)};
    return gmd_fitted_table_add(table, cells);
}

static void put_tensors(const gmd_inspection *inspection, const retention_group *groups,
                        size_t count, FILE *out, gmd_terminal terminal)
{
    gmd_fitted_table table = {.columns = tensor_columns, .column_count = TENSOR_COLUMNS};
    for (size_t i = 0; i < count && add_tensor(&table, inspection, &groups[i]); i++) {
    }
    gmd_fitted_table_fit(&table, gmd_fitted_width(terminal));
    gmd_fitted_table_put(&table, out, terminal);
    gmd_fitted_table_free(&table);
}

static void put_held(const gmd_held *held, const char *words, FILE *out, gmd_terminal terminal)
{
    enum { FIGURES = 30 };
    char used[24], count[32];
    int at = FIGURES;
    if (held->blocks) {
        fprintf(out, "  %10s  %7s %-6s  ", format_short_size(held->used, used),
                gmd_format_count(held->blocks, count), held->blocks == 1 ? "block" : "blocks");
        gmd_put_flowing(out, terminal, FIGURES, &at, words);
        putc('\n', out);
    }
}

static void put_rounding(const gmd_held *held, const char *words, FILE *out, gmd_terminal terminal)
{
    gmd_held extra = {held->blocks, 0, held->used - held->asked};
    if (held->used > held->asked) {
        put_held(&extra, words, out, terminal);
    }
}

static void put_allocated(const gmd_inspection *inspection, uint64_t asked_for, FILE *out,
                          gmd_terminal terminal)
{
    char allocated[24], asked[24], reserved[24];
    gmd_held_text line;
    fprintf(gmd_held_text_begin(&line, out), "  Allocated: %s, %s of it asked for; reserved: %s",
            format_short_size(inspection->allocated, allocated),
            format_short_size(asked_for, asked), format_short_size(inspection->reserved, reserved));
    gmd_held_text_put(&line, terminal, 0, 4);
}

static void put_sums(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal)
{
    char rest[24];
    uint64_t used_sum = 0, asked_sum = 0;
    for (int i = 0; i < GMD_HOLDERS; i++) {
        used_sum += inspection->held[i].used;
        asked_sum += inspection->held[i].asked;
    }
    put_allocated(inspection, asked_sum, out, terminal);
    for (uint32_t i = 0; i < GMD_HOLDERS; i++) {
        put_held(&inspection->held[i], holder_words(i), out, terminal);
    }
    if (!inspection->uses_are_known) {
        int at = 0;
        gmd_put_flowing(out, terminal, 4, &at,
                        "  The allocator keeps no statistics: what it uses beyond what is asked "
                        "for is not seen.");
        putc('\n', out);
        return;
    }
    if (used_sum != inspection->allocated) {
        bool is_less = used_sum < inspection->allocated;
        uint64_t difference =
            is_less ? inspection->allocated - used_sum : used_sum - inspection->allocated;
        fprintf(out, "  %10s  %s\n", format_short_size(difference, rest),
                is_less ? "allocated otherwise" : "of these are not counted as allocated");
    }
    fputs(inspection->small.blocks || inspection->large.blocks ? "  Beyond what was asked for:\n"
                                                               : "",
          out);
    put_rounding(&inspection->small, "of rounding, less than 512 B each", out, terminal);
    put_rounding(&inspection->large, "of 512 B and more each: blocks that were not split", out,
                 terminal);
}

static void put_rest(const gmd_inspection *inspection, const retention_group *groups, size_t count,
                     FILE *out)
{
    uint64_t left = inspection->tensors_dropped, bytes = 0;
    char number[32], size[24];
    for (size_t i = SHOWN_TENSORS; i < count; i++) {
        left += groups[i].tensors;
        bytes += groups[i].used;
    }
    if (left) {
        fprintf(out, "  ... %s smaller ones with %s; --json has them ...\n",
                gmd_format_count(left, number), format_short_size(bytes, size));
    }
}

void gmd_inspect_tensors(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal)
{
    size_t count;
    retention_group *groups = retention_groups_of(inspection, true, &count);
    fprintf(out, "  %sTensors ", bold(terminal));
    put_moment(inspection, out);
    fprintf(out, "%s\n", plain(terminal));
    put_tensors(inspection, groups, gmd_min(count, SHOWN_TENSORS), out, terminal);
    put_rest(inspection, groups, count, out);
    put_sums(inspection, out, terminal);
    free(groups);
}

/* --- retention --------------------------------------------------------------------------- */

/* What stands before a way: figures, which are never shortened. */
enum { FIGURES_WIDTH = 29, LEAST_WAY = 24 };

static void put_group(const gmd_inspection *inspection, const retention_group *group,
                      gmd_terminal terminal, FILE *out)
{
    char used[24], count[32], line[16] = "", name[512];
    if (group->line) {
        snprintf(line, sizeof line, "%u", group->line);
    }
    fprintf(out, "  %10s  %7s  %4s  ", format_short_size(group->used, used),
            gmd_format_count(group->tensors, count), line);
    gmd_fitted_put_rest(retention_group_name(inspection, group, name, sizeof name), FIGURES_WIDTH,
                        LEAST_WAY, terminal, out);
    putc('\n', out);
}

void gmd_inspect_retention(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal)
{
    size_t count;
    retention_group *groups = retention_groups_of(inspection, false, &count);
    fprintf(out, "  %sWho holds what is alive ", bold(terminal));
    put_moment(inspection, out);
    fprintf(out, "%s\n  %s%10s  %7s  %4s  held by%s\n", plain(terminal), bold(terminal), "Used MEM",
            "tensors", "line", plain(terminal));
    uint64_t left_ways = 0, left_tensors = 0, left_bytes = 0, sharing = 0;
    for (size_t i = 0; i < count; i++) {
        if (groups[i].used == 0) {
            sharing += groups[i].tensors;
        } else if (i < SHOWN_GROUPS) {
            put_group(inspection, &groups[i], terminal, out);
        } else {
            left_ways++;
            left_tensors += groups[i].tensors;
            left_bytes += groups[i].used;
        }
    }
    char tensors[32], size[24];
    if (left_ways) {
        gmd_held_text line;
        fprintf(gmd_held_text_begin(&line, out),
                "  ... %" PRIu64 " more groups: %s tensors, %s; --json has them ...", left_ways,
                gmd_format_count(left_tensors, tensors), format_short_size(left_bytes, size));
        gmd_held_text_put(&line, terminal, 0, 6);
    }
    if (sharing) {
        fprintf(out, "  %10s  %7s        share the blocks of these\n", "",
                gmd_format_count(sharing, tensors));
    }
    free(groups);
}
