#include "curve.h"

#include "gmd_min.h"
#include "gmd_report_text.h"
#include "gmd_size.h"

#include <stdlib.h>

enum { LABEL_COLUMNS = 20, LEVELS = 8 };

/* The highest of each in equal shares of the recording's moments. */
typedef struct curve {
    uint64_t allocated[CURVE_MOST_CELLS], reserved[CURVE_MOST_CELLS];
    uint32_t first, last; /* moments */
    int cells;
} curve;

static int cell_of(const curve *c, uint32_t moment)
{
    uint64_t span = (uint64_t)c->last - c->first + 1;
    return (int)((uint64_t)(moment - c->first) * (uint64_t)c->cells / span);
}

static void note(void *context, uint32_t moment, const gmd_amount *amount)
{
    curve *c = context;
    int cell = cell_of(c, moment);
    if (amount->allocated > c->allocated[cell]) {
        c->allocated[cell] = amount->allocated;
    }
    if (amount->reserved > c->reserved[cell]) {
        c->reserved[cell] = amount->reserved;
    }
}

static void put_level(uint64_t value, uint64_t highest, bool utf8, FILE *out)
{
    static const char ascii[LEVELS + 1] = " .:-=+*#";
    unsigned level = highest ? (unsigned)((double)value / (double)highest * (LEVELS - 1) + 0.5) : 0;
    if (utf8) {
        gmd_utf8_put(0x2581 + level, out);
    } else {
        fputc(ascii[level], out);
    }
}

int curve_cells(const gmd_diagnosis_view *view)
{
    int cells = view->columns - LABEL_COLUMNS;
    return cells < LEVELS ? 0 : cells < CURVE_MOST_CELLS ? cells : CURVE_MOST_CELLS;
}

void curve_put_row(const char *label, const uint64_t *values, int cells, uint64_t highest,
                   const gmd_diagnosis_view *view, FILE *out)
{
    char size[24];
    uint64_t most = 0;
    for (int i = 0; i < cells; i++) {
        most = gmd_max(values[i], most);
    }
    int width = fprintf(out, "%-9s %9s", label, gmd_format_size(most, size));
    fputs(width < LABEL_COLUMNS ? " " : "", out); /* "1006.0 MiB" takes the gap's column */
    for (int i = 0; i < cells; i++) {
        uint64_t value = values[i];
        for (int k = i; value == 0 && k > 0; k--) {
            value = values[k - 1];
        }
        put_level(value, highest, view->terminal.utf8, out);
    }
    fputc('\n', out);
}

static void put_iterations(const curve *c, const gmd_iterations *it, FILE *out)
{
    bool begins[CURVE_MOST_CELLS] = {false};
    for (uint32_t i = 0; i < it->count; i++) {
        begins[cell_of(c, it->starts[i])] = true;
    }
    fprintf(out, "%-*s", LABEL_COLUMNS, "iterations");
    for (int i = 0; i < c->cells; i++) {
        fputc(begins[i] ? '|' : ' ', out);
    }
    fputc('\n', out);
}

gmd_status curve_put(const gmd_facts *facts, const gmd_diagnosis_view *view, FILE *out,
                     gmd_error *error)
{
    const gmd_recording *r = &facts->recording;
    int cells = curve_cells(view);
    if (r->first == 0 || !cells) {
        return GMD_OK;
    }
    curve *c = calloc(1, sizeof *c);
    if (!c) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the curve");
    }
    c->first = r->first;
    c->last = r->last;
    c->cells = cells;
    gmd_recording_walk(r, note, c);
    uint64_t highest = gmd_max(r->peak.amount.reserved, r->peak.amount.allocated);
    if (facts->snapshot->recorder == GMD_RECORDER_PYTORCH) {
        curve_put_row("reserved", c->reserved, cells, highest, view, out);
    }
    curve_put_row("allocated", c->allocated, cells, highest, view, out);
    if (facts->iterations.count && facts->iterations.count * 2 <= (uint32_t)c->cells) {
        put_iterations(c, &facts->iterations, out);
    }
    fputc('\n', out);
    free(c);
    return GMD_OK;
}
