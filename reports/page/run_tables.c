#include "run_tables.h"

#include "oracle_table.h"
#include "table.h"

/* --- runs ------------------------------------------------------------------------------------ */

static void put_stat(gmd_json *json, const gmd_outcome *o, uint64_t figure)
{
    table_figure(json, o->has_stats ? figure : GMD_STAT_UNKNOWN);
}

static void put_runs(document *to, const gmd_report *report, uint32_t input)
{
    static const table_column list[] = {{"Run", "text"},           {"Verdict", "text"},
                                        {"Violations", "count"},   {"Requests", "count"},
                                        {"Device calls", "count"}, {"Time", "ns"},
                                        {"Peak allocated", "B"},   {"Peak reserved", "B"},
                                        {"Retries", "count"},      {"Out of memory", "count"}};
    char title[GMD_TITLE_TEXT];
    gmd_json *json = table_begin(to, "runs", "Runs", input, TABLE_COLUMNS(list));
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *o = report->outcomes[i];
        table_row(json);
        gmd_json_string(json, NULL, gmd_outcome_title(report, i, title));
        gmd_json_string(json, NULL, gmd_verdict_name(o->verdict));
        gmd_json_u64(json, NULL, o->violation_count);
        gmd_json_u64(json, NULL, o->requests);
        gmd_json_u64(json, NULL, o->device_calls);
        table_seconds(json, o->seconds);
        put_stat(json, o, o->stats.allocated_bytes_peak);
        put_stat(json, o, o->stats.reserved_bytes_peak);
        put_stat(json, o, o->stats.num_alloc_retries);
        put_stat(json, o, o->stats.num_ooms);
        table_row_end(json);
    }
    table_end(json);
}

static size_t count_of(const gmd_report *report, uint32_t (*count)(const gmd_outcome *))
{
    size_t all = 0;
    for (size_t i = 0; i < report->outcome_count; i++) {
        all += count(report->outcomes[i]);
    }
    return all;
}

static uint32_t phase_count(const gmd_outcome *o)
{
    return o->phase_count;
}

static uint32_t bound_count(const gmd_outcome *o)
{
    return o->bound_count;
}

static uint32_t note_count(const gmd_outcome *o)
{
    return o->note_count;
}

static void put_phases(document *to, const gmd_report *report, uint32_t input)
{
    static const table_column list[] = {{"Run", "text"},    {"Phase", "text"},
                                        {"Allocated", "B"}, {"Most allocated", "B"},
                                        {"Reserved", "B"},  {"Most reserved", "B"}};
    char title[GMD_TITLE_TEXT];
    gmd_json *json = table_begin(to, "phases", "Phases", input, TABLE_COLUMNS(list));
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *o = report->outcomes[i];
        gmd_outcome_title(report, i, title);
        for (uint32_t k = 0; k < o->phase_count; k++) {
            table_row(json);
            gmd_json_string(json, NULL, title);
            gmd_json_string(json, NULL, o->phases[k].label);
            table_figure(json, o->phases[k].allocated);
            table_figure(json, o->phases[k].max_allocated);
            table_figure(json, o->phases[k].reserved);
            table_figure(json, o->phases[k].max_reserved);
            table_row_end(json);
        }
    }
    table_end(json);
}

static const char *bound_fate(const gmd_stated_bound *b)
{
    if (b->peak == GMD_STAT_UNKNOWN) {
        return "not seen";
    }
    return !gmd_stated_bound_is_passed(b) ? "held" : b->leaks ? "passed, as made to" : "passed";
}

static void put_bounds(document *to, const gmd_report *report, uint32_t input)
{
    static const table_column list[] = {
        {"Run", "text"}, {"Figure", "text"}, {"At most", "B"}, {"Peak", "B"}, {"Bound", "text"}};
    char title[GMD_TITLE_TEXT];
    gmd_json *json = table_begin(to, "bounds", "Stated bounds", input, TABLE_COLUMNS(list));
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *o = report->outcomes[i];
        gmd_outcome_title(report, i, title);
        for (uint32_t k = 0; k < o->bound_count; k++) {
            table_row(json);
            gmd_json_string(json, NULL, title);
            gmd_json_string(json, NULL, o->bounds[k].is_reserved ? "reserved" : "allocated");
            gmd_json_u64(json, NULL, o->bounds[k].bytes);
            table_figure(json, o->bounds[k].peak);
            gmd_json_string(json, NULL, bound_fate(&o->bounds[k]));
            table_row_end(json);
        }
    }
    table_end(json);
}

static void put_notes(document *to, const gmd_report *report, uint32_t input)
{
    static const table_column list[] = {{"Run", "text"}, {"Note", "text"}};
    char title[GMD_TITLE_TEXT];
    gmd_json *json = table_begin(to, "notes", "Notes", input, TABLE_COLUMNS(list));
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *o = report->outcomes[i];
        gmd_outcome_title(report, i, title);
        for (uint32_t k = 0; k < o->note_count; k++) {
            table_row(json);
            gmd_json_string(json, NULL, title);
            gmd_json_string(json, NULL, o->notes[k]);
            table_row_end(json);
        }
    }
    table_end(json);
}

void tables_of_runs(document *to, const gmd_report *report, uint32_t input)
{
    if (!report->gate) {
        put_runs(to, report, input);
    }
    if (count_of(report, phase_count)) {
        put_phases(to, report, input);
    }
    if (count_of(report, bound_count)) {
        put_bounds(to, report, input);
    }
    table_of_oracles(to, report, input);
    if (count_of(report, note_count)) {
        put_notes(to, report, input);
    }
}
