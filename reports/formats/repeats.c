#include "repeats.h"

#include "gmd_fitted_table.h"
#include "gmd_report_text.h"
#include "outcome.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t peak_of(const gmd_outcome *outcome, bool reserved)
{
    uint64_t peak = GMD_STAT_UNKNOWN;
    if (outcome->has_stats) {
        peak = reserved ? outcome->stats.reserved_bytes_peak : outcome->stats.allocated_bytes_peak;
    }
    if (peak == GMD_STAT_UNKNOWN && outcome->phase_count > 0) {
        const gmd_phase *last = &outcome->phases[outcome->phase_count - 1];
        peak = reserved ? last->max_reserved : last->max_allocated;
    }
    return peak;
}

static uint64_t peak_allocated(const gmd_outcome *outcome)
{
    return peak_of(outcome, false);
}

static uint64_t peak_reserved(const gmd_outcome *outcome)
{
    return peak_of(outcome, true);
}

static uint64_t requests(const gmd_outcome *outcome)
{
    return outcome->requests;
}

static uint64_t device_calls(const gmd_outcome *outcome)
{
    return outcome->device_calls;
}

static uint64_t retries(const gmd_outcome *outcome)
{
    return outcome->has_stats ? outcome->stats.num_alloc_retries : GMD_STAT_UNKNOWN;
}

static const struct {
    const char *key, *heading;
    uint64_t (*of)(const gmd_outcome *outcome);
    bool is_bytes;
} figures[] = {
    {"max_allocated", "max allocated", peak_allocated, true},
    {"max_reserved", "max reserved", peak_reserved, true},
    {"requests", "requests", requests, false},
    {"device_calls", "device calls", device_calls, false},
    {"num_alloc_retries", "retries", retries, false},
};

enum { FIGURES = sizeof figures / sizeof figures[0] };

typedef struct spread {
    bool is_known; /* by every run */
    uint64_t least, median, most;
} spread;

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Runs that could not be carried out tell nothing. */
static spread spread_of(const gmd_report *report, const gmd_repeat *repeat, int figure)
{
    spread result = {.is_known = false};
    uint64_t *values = calloc(repeat->count, sizeof *values);
    size_t count = 0;
    bool all_known = values != NULL;
    for (size_t i = 0; all_known && i < repeat->count; i++) {
        const gmd_outcome *outcome = report->outcomes[repeat->first + i];
        if (!is_error(outcome)) {
            values[count++] = figures[figure].of(outcome);
            all_known = values[count - 1] != GMD_STAT_UNKNOWN;
        }
    }
    if (all_known && count > 0) {
        qsort(values, count, sizeof *values, by_value);
        uint64_t low = values[(count - 1) / 2], high = values[count / 2];
        result = (spread){true, values[0], low + (high - low) / 2, values[count - 1]};
    }
    free(values);
    return result;
}

size_t repeat_passes(const gmd_report *report, const gmd_repeat *repeat)
{
    size_t count = 0;
    for (size_t i = 0; i < repeat->count; i++) {
        count += report->outcomes[repeat->first + i]->verdict == GMD_PASS;
    }
    return count;
}

const gmd_repeat *repeat_of(const gmd_report *report, size_t outcome)
{
    for (size_t i = 0; i < report->repeat_count; i++) {
        const gmd_repeat *repeat = &report->repeats[i];
        if (outcome >= repeat->first && outcome - repeat->first < repeat->count) {
            return repeat;
        }
    }
    return NULL;
}

bool is_repeated(const gmd_report *report, size_t outcome)
{
    return repeat_of(report, outcome) && report->outcomes[outcome]->verdict == GMD_PASS;
}

/* --- JSON -------------------------------------------------------------------------------- */

static void write_spread(gmd_json *json, const char *key, spread s)
{
    if (!s.is_known) {
        gmd_json_null(json, key);
        return;
    }
    gmd_json_row(json, key);
    gmd_json_u64(json, "min", s.least);
    gmd_json_u64(json, "median", s.median);
    gmd_json_u64(json, "max", s.most);
    gmd_json_end(json);
}

void repeat_head_json(gmd_json *json, const gmd_report *report, const gmd_repeat *repeat)
{
    const gmd_outcome *first = report->outcomes[repeat->first];
    gmd_json_string(json, "name", first->name);
    gmd_json_string(json, "variant", first->variant);
    gmd_json_u64(json, "runs", repeat->count);
    gmd_json_u64(json, "passed", repeat_passes(report, repeat));
    gmd_json_u64(json, "first_seed", first->seed);
    gmd_json_u64(json, "first_run", repeat->first);
}

void repeats_json(gmd_json *json, const gmd_report *report)
{
    bool is_open = false;
    for (size_t i = 0; i < report->repeat_count; i++) {
        const gmd_repeat *repeat = &report->repeats[i];
        if (repeat->is_of_placements) {
            continue;
        }
        if (!is_open) {
            gmd_json_array(json, "repeats");
            is_open = true;
        }
        gmd_json_object(json, NULL);
        repeat_head_json(json, report, repeat);
        for (int k = 0; k < FIGURES; k++) {
            write_spread(json, figures[k].key, spread_of(report, repeat, k));
        }
        gmd_json_end(json);
    }
    if (is_open) {
        gmd_json_end(json);
    }
}

/* --- the terminal ------------------------------------------------------------------------ */

enum { CELL = 48 };

static void format_cell(uint64_t value, bool is_bytes, gmd_table_unit unit, char cell[CELL])
{
    char number[40];
    if (is_bytes) {
        gmd_format_in_unit(value, unit, number);
        snprintf(cell, CELL, "%s %s", number, unit.name);
    } else {
        snprintf(cell, CELL, "%s", gmd_format_count(value, number));
    }
}

static bool add_spread(gmd_fitted_table *table, const char *heading, spread s, bool is_bytes)
{
    gmd_phase widest = {.max_allocated = is_bytes && s.is_known ? s.most : 0};
    gmd_table_unit unit = gmd_table_unit_for(&widest, 1);
    char least[CELL] = "-", median[CELL] = "-", most[CELL] = "-";
    if (s.is_known) {
        format_cell(s.least, is_bytes, unit, least);
        format_cell(s.median, is_bytes, unit, median);
        format_cell(s.most, is_bytes, unit, most);
    }
    return gmd_fitted_table_add(table, (const char *const[]){heading, least, median, most});
}

void repeat_terminal(const gmd_report *report, const gmd_repeat *repeat, FILE *out,
                     gmd_terminal terminal)
{
    static const gmd_fitted_column columns[] = {{.heading = "", .is_text = true},
                                                {.heading = "min"},
                                                {.heading = "median"},
                                                {.heading = "max"}};
    gmd_fitted_table table = {.columns = columns, .column_count = sizeof columns / sizeof *columns};
    const gmd_outcome *first = report->outcomes[repeat->first];
    fprintf(out, "  %zu of %zu runs pass, seeds %" PRIu64 " to %" PRIu64 "\n",
            repeat_passes(report, repeat), repeat->count, first->seed,
            first->seed + repeat->count - 1);
    bool has_memory = true;
    for (int k = 0; k < FIGURES && has_memory; k++) {
        has_memory = add_spread(&table, figures[k].heading, spread_of(report, repeat, k),
                                figures[k].is_bytes);
    }
    gmd_fitted_table_fit(&table, gmd_fitted_width(terminal));
    gmd_fitted_table_put(&table, out, terminal);
    gmd_fitted_table_free(&table);
}
