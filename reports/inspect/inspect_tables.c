/* inspect_tables.c - the line profile and the timeline by category, for people. */
#include "gmd_fitted_table.h"
#include "gmd_inspect.h"
#include "gmd_min.h"
#include "gmd_report_text.h"
#include "inspect_words.h"

#include <inttypes.h>
#include <string.h>

static const char *bold(gmd_terminal terminal)
{
    return terminal.color ? "\033[1m" : "";
}

static const char *plain(gmd_terminal terminal)
{
    return terminal.color ? "\033[0m" : "";
}

/* --- the line profile: the columns of pytorch_memlab's, and two more --------------------- */

/* Columns of figures, which are never shortened, before the code; on the narrowest screens without
 * how often a line was executed. */
typedef struct line_layout {
    int active, reserved, change;
    int times; /* 0: left out */
    const char *headings[3][3];
} line_layout;

static const line_layout wide = {12,
                                 14,
                                 12,
                                 6,
                                 {{"active_bytes", "reserved_bytes", "change"},
                                  {"all", "all", "active_bytes"},
                                  {"peak", "peak", ""}}},
                         narrow = {8,
                                   8,
                                   9,
                                   6,
                                   {{"active", "reserved", "change"},
                                    {"all", "all", "active"},
                                    {"peak", "peak", ""}}};

enum { LEAST_CODE = 20 };

/* Up to the code, gaps too. */
static int width_of_figures(const line_layout *l)
{
    enum { GAP = 2, LINE = 4 };
    return 3 * GAP + l->active + l->reserved + l->change + (l->times ? GAP + l->times : 0) + GAP +
           LINE + GAP;
}

static line_layout layout_for(gmd_terminal terminal)
{
    int width = gmd_fitted_width(terminal);
    line_layout layout = width < GMD_FITTED_DEFAULT_WIDTH ? narrow : wide;
    if (width_of_figures(&layout) + LEAST_CODE > width) {
        layout.times = 0;
    }
    return layout;
}

static void put_figures(const line_layout *l, const gmd_line_row *row, FILE *out)
{
    char active[24], reserved[24], change[24], signed_change[32];
    uint64_t size = row->change < 0 ? 0 - (uint64_t)row->change : (uint64_t)row->change;
    const char *sign = row->change < 0 ? "-" : row->change > 0 ? "+" : "";
    snprintf(signed_change, sizeof signed_change, "%s%s", sign, format_short_size(size, change));
    fprintf(out, "  %*s  %*s  %*s", l->active, format_short_size(row->active_peak, active),
            l->reserved, format_short_size(row->reserved_peak, reserved), l->change, signed_change);
}

static void put_times(const line_layout *l, const gmd_line_row *row, FILE *out)
{
    char times[32] = "";
    if (row->times) {
        snprintf(times, sizeof times, "%" PRIu64, row->times);
    }
    if (l->times) {
        fprintf(out, "  %*s", l->times, times);
    }
}

static void put_line(const gmd_inspection *inspection, const line_layout *l,
                     const gmd_line_row *row, gmd_terminal terminal, FILE *out)
{
    if (row->times) {
        put_figures(l, row, out);
    } else {
        fprintf(out, "  %*s  %*s  %*s", l->active, "", l->reserved, "", l->change, "");
    }
    put_times(l, row, out);
    fprintf(out, "  %4u  ", row->line);
    gmd_fitted_put_start(gmd_inspection_text(inspection, row->code), width_of_figures(l),
                         LEAST_CODE, terminal, out);
    putc('\n', out);
}

static void put_headings(const line_layout *l, int row, FILE *out)
{
    const char *const *h = l->headings[row];
    fprintf(out, "  %*s  %*s", l->active, h[0], l->reserved, h[1]);
    if (*h[2]) {
        fprintf(out, "  %*s", l->change, h[2]);
    }
}

void gmd_inspect_lines(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal)
{
    const gmd_line_row *row;
    const line_layout l = layout_for(terminal);
    fputs(bold(terminal), out);
    put_headings(&l, 0, out);
    fputs(l.times ? "   times" : "", out);
    fprintf(out, "  %4s  code%s\n", "line", plain(terminal));
    for (int i = 1; i < 3; i++) {
        put_headings(&l, i, out);
        putc('\n', out);
    }
    for (uint32_t i = 0; (row = gmd_inspection_line(inspection, i)); i++) {
        put_line(inspection, &l, row, terminal, out);
    }
}

/* --- the timeline ------------------------------------------------------------------------ */

/* The order of the columns: what stays comes first. */
static const struct {
    gmd_category category;
    const char *brief; /* heading; NULL: the other is short */
} columns[GMD_CATEGORIES] = {
    {GMD_PARAMETER, "param."},  {GMD_GRADIENT, "grad."}, {GMD_OPTIMIZER_STATE, "optim."},
    {GMD_ACTIVATION, "activ."}, {GMD_INPUT, NULL},       {GMD_TEMPORARY, "temp."},
    {GMD_WORKSPACE, "works."},
};

enum {
    LABEL_COLUMN,
    FIRST_CATEGORY,
    SUM_COLUMN = FIRST_CATEGORY + GMD_CATEGORIES,
    TIMELINE_COLUMNS
};

static uint64_t sum_of(const uint64_t bytes[GMD_CATEGORIES])
{
    uint64_t sum = 0;
    for (int i = 0; i < GMD_CATEGORIES; i++) {
        sum += bytes[i];
    }
    return sum;
}

static gmd_table_unit unit_for(const gmd_inspection *inspection, uint32_t *count)
{
    const gmd_phase_row *row;
    gmd_phase largest = {.max_allocated = 0};
    for (*count = 0; (row = gmd_inspection_phase(inspection, *count)); (*count)++) {
        largest.max_allocated = gmd_max(sum_of(row->peak), largest.max_allocated);
    }
    return gmd_table_unit_for(&largest, 1);
}

static uint64_t largest_of(const gmd_inspection *inspection, gmd_category category)
{
    const gmd_phase_row *row;
    uint64_t largest = 0;
    for (uint32_t i = 0; (row = gmd_inspection_phase(inspection, i)); i++) {
        largest = gmd_max(gmd_max(row->peak[category], row->end[category]), largest);
    }
    return largest;
}

/* Where there is no room for all categories, those that never have much leave first. */
static void rank_categories(const gmd_inspection *inspection,
                            gmd_fitted_column headings[TIMELINE_COLUMNS])
{
    uint64_t largest[GMD_CATEGORIES];
    for (int i = 0; i < GMD_CATEGORIES; i++) {
        largest[i] = largest_of(inspection, columns[i].category);
    }
    for (int i = 0; i < GMD_CATEGORIES; i++) {
        int smaller = 0;
        for (int k = 0; k < GMD_CATEGORIES; k++) {
            smaller += largest[k] < largest[i] || (largest[k] == largest[i] && k > i);
        }
        headings[FIRST_CATEGORY + i].leaves = 1 + smaller;
    }
}

/* Those that are not nothing. */
static void put_left_out(const gmd_inspection *inspection, const gmd_fitted_table *table, FILE *out,
                         gmd_terminal terminal)
{
    int at = 0;
    for (int i = 0; i < GMD_CATEGORIES; i++) {
        bool is_there = table->widths[FIRST_CATEGORY + i] > 0;
        if (!is_there && largest_of(inspection, columns[i].category)) {
            gmd_put_flowing(out, terminal, 4, &at, at ? ", " : "  only in the sum: ");
            gmd_put_flowing(out, terminal, 4, &at, category_heading(columns[i].category));
        }
    }
    fputs(at ? "\n" : "", out);
}

static bool add_phase(gmd_fitted_table *table, const gmd_inspection *inspection,
                      const gmd_phase_row *row, bool at_peak, gmd_table_unit unit)
{
    const uint64_t *bytes = at_peak ? row->peak : row->end;
    char numbers[TIMELINE_COLUMNS][40];
    const char *cells[TIMELINE_COLUMNS] = {gmd_inspection_text(inspection, row->label)};
    for (int i = 0; i < GMD_CATEGORIES; i++) {
        cells[FIRST_CATEGORY + i] =
            gmd_format_in_unit(bytes[columns[i].category], unit, numbers[FIRST_CATEGORY + i]);
    }
    cells[SUM_COLUMN] = gmd_format_in_unit(sum_of(bytes), unit, numbers[SUM_COLUMN]);
    return gmd_fitted_table_add(table, cells);
}

static void put_timeline(const gmd_inspection *inspection, bool at_peak, FILE *out,
                         gmd_terminal terminal)
{
    uint32_t count, first, resume;
    gmd_table_unit unit = unit_for(inspection, &count);
    char sum[16];
    snprintf(sum, sizeof sum, "sum %s", unit.name);
    gmd_fitted_column headings[TIMELINE_COLUMNS] = {
        [LABEL_COLUMN] = {.heading = at_peak ? "peak of phase" : "end of phase",
                          .is_text = true,
                          .least = 14},
        [SUM_COLUMN] = {.heading = sum}};
    for (int i = 0; i < GMD_CATEGORIES; i++) {
        headings[FIRST_CATEGORY + i] = (gmd_fitted_column){
            .heading = category_heading(columns[i].category), .brief = columns[i].brief};
    }
    rank_categories(inspection, headings);
    gmd_fitted_table table = {.columns = headings, .column_count = TIMELINE_COLUMNS};
    gmd_phases_to_leave_out(count, &first, &resume);
    bool has_memory = true;
    for (uint32_t i = 0; i < count && has_memory; i = i + 1 == first ? resume : i + 1) {
        has_memory =
            add_phase(&table, inspection, gmd_inspection_phase(inspection, i), at_peak, unit);
    }
    gmd_fitted_table_fit(&table, gmd_fitted_width(terminal));
    gmd_fitted_table_put_heading(&table, out, terminal);
    for (size_t i = 0; i < gmd_fitted_table_rows(&table); i++) {
        if (i == first && first < resume) {
            fprintf(out, "  ... %u phases left out ...\n", resume - first);
        }
        gmd_fitted_table_put_row(&table, i, out);
    }
    put_left_out(inspection, &table, out, terminal);
    gmd_fitted_table_free(&table);
}

void gmd_inspect_timeline(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal)
{
    put_timeline(inspection, false, out, terminal);
    put_timeline(inspection, true, out, terminal);
}

void gmd_inspection_terminal(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal)
{
    static void (*const writers[])(const gmd_inspection *inspection, FILE *out,
                                   gmd_terminal terminal) = {
        gmd_inspect_lines, gmd_inspect_tensors, gmd_inspect_retention, gmd_inspect_timeline};
    static const uint32_t reports[] = {GMD_INSPECT_LINES, GMD_INSPECT_TENSORS,
                                       GMD_INSPECT_RETENTION, GMD_INSPECT_TIMELINE};
    if (!inspection) {
        return;
    }
    if (!inspection->is_complete) {
        fputs("\n  The run ended before what was seen inside could be written down.\n", out);
        return;
    }
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        if (inspection->wanted & reports[i]) {
            putc('\n', out);
            writers[i](inspection, out, terminal);
        }
    }
    if (inspection->no_memory) {
        fputs("\n  There was not enough host memory: this is not all.\n", out);
    }
    putc('\n', out);
}
