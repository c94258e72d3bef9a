/* inspect_tables.c - the line profile and the timeline by category, for people. */
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

static void put_line(const gmd_inspection *inspection, const gmd_line_row *row, FILE *out)
{
    char active[24], reserved[24], change[24], signed_change[32];
    if (row->times == 0) {
        fprintf(out, "  %12s  %14s  %12s  %6s", "", "", "", "");
    } else {
        uint64_t size = row->change < 0 ? 0 - (uint64_t)row->change : (uint64_t)row->change;
        const char *sign = row->change < 0 ? "-" : row->change > 0 ? "+" : "";
        snprintf(signed_change, sizeof signed_change, "%s%s", sign,
                 format_short_size(size, change));
        fprintf(out, "  %12s  %14s  %12s  %6" PRIu64, format_short_size(row->active_peak, active),
                format_short_size(row->reserved_peak, reserved), signed_change, row->times);
    }
    fprintf(out, "  %4u  ", row->line);
    gmd_utf8_put_line(gmd_inspection_text(inspection, row->code), out);
    putc('\n', out);
}

void gmd_inspect_lines(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal)
{
    const gmd_line_row *row;
    fprintf(out, "  %s%12s  %14s  %12s  %6s  %4s  code%s\n", bold(terminal), "active_bytes",
            "reserved_bytes", "change", "times", "line", plain(terminal));
    fprintf(out, "  %12s  %14s  %12s\n", "all", "all", "active_bytes");
    fprintf(out, "  %12s  %14s\n", "peak", "peak");
    for (uint32_t i = 0; (row = gmd_inspection_line(inspection, i)); i++) {
        put_line(inspection, row, out);
    }
}

/* --- the timeline ------------------------------------------------------------------------ */

/* The order of the columns: what stays comes first. */
static const struct {
    gmd_category category;
    const char *heading;
} columns[GMD_CATEGORIES] = {
    {GMD_PARAMETER, "parameter"},   {GMD_GRADIENT, "gradient"}, {GMD_OPTIMIZER_STATE, "optimizer"},
    {GMD_ACTIVATION, "activation"}, {GMD_INPUT, "input"},       {GMD_TEMPORARY, "temporary"},
    {GMD_WORKSPACE, "workspace"},
};

static uint64_t sum_of(const uint64_t bytes[GMD_CATEGORIES])
{
    uint64_t sum = 0;
    for (int i = 0; i < GMD_CATEGORIES; i++) {
        sum += bytes[i];
    }
    return sum;
}

static void measure(const gmd_inspection *inspection, uint32_t *count, int *label_width,
                    gmd_table_unit *unit)
{
    const gmd_phase_row *row;
    gmd_phase largest = {.max_allocated = 0};
    *label_width = (int)strlen("at the end of the phase");
    for (*count = 0; (row = gmd_inspection_phase(inspection, *count)); (*count)++) {
        uint64_t peak = sum_of(row->peak);
        size_t length = strlen(gmd_inspection_text(inspection, row->label));
        largest.max_allocated = gmd_max(peak, largest.max_allocated);
        *label_width = length > (size_t)*label_width && length < 64 ? (int)length : *label_width;
    }
    *unit = gmd_table_unit_for(&largest, 1);
}

static void put_phase(const gmd_inspection *inspection, const gmd_phase_row *row, bool at_peak,
                      int label_width, gmd_table_unit unit, FILE *out)
{
    const uint64_t *bytes = at_peak ? row->peak : row->end;
    const char *label = gmd_inspection_text(inspection, row->label);
    char number[40];
    fputs("  ", out);
    gmd_utf8_put_line(label, out);
    int missing = label_width - (int)strlen(label);
    fprintf(out, "%*s", missing > 0 ? missing : 0, "");
    for (int i = 0; i < GMD_CATEGORIES; i++) {
        fprintf(out, "  %10s", gmd_format_in_unit(bytes[columns[i].category], unit, number));
    }
    fprintf(out, "  %10s\n", gmd_format_in_unit(sum_of(bytes), unit, number));
}

static void put_timeline(const gmd_inspection *inspection, bool at_peak, FILE *out,
                         gmd_terminal terminal)
{
    uint32_t count, first, resume;
    int label_width;
    gmd_table_unit unit;
    measure(inspection, &count, &label_width, &unit);
    gmd_phases_to_leave_out(count, &first, &resume);
    fprintf(out, "  %s%-*s", bold(terminal), label_width,
            at_peak ? "at the phase's peak" : "at the end of the phase");
    for (int i = 0; i < GMD_CATEGORIES; i++) {
        fprintf(out, "  %10s", columns[i].heading);
    }
    fprintf(out, "  %6s %s%s\n", "sum", unit.name, plain(terminal));
    for (uint32_t i = 0; i < count; i++) {
        if (i == first) {
            fprintf(out, "  ... %u phases left out ...\n", resume - first);
            i = resume;
        }
        put_phase(inspection, gmd_inspection_phase(inspection, i), at_peak, label_width, unit, out);
    }
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
