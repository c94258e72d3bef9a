#include "gmd_compared_result.h"

#include "gmd_result_json.h"
#include "outcome.h"
#include "result_file.h"
#include "result_values.h"

#include <stdio.h>
#include <string.h>

typedef struct side_reader {
    result_reader values;
    gmd_diff_input *input;
    bool is_of_end;
    uint64_t allocated;
} side_reader;

static void keep(side_reader *s, bool is_added)
{
    if (!is_added) {
        result_fail_memory(&s->values);
    }
}

/* --- of a diagnosis -------------------------------------------------------------------------- */

static void read_holders(side_reader *s, const json_t *moment)
{
    result_reader *r = &s->values;
    const json_t *all = result_array(r, moment, "holders", RESULT_OBJECT, UINT32_MAX);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *row = json_array_get(all, i);
        const char *file = result_string(r, row, "file");
        const char *function = result_string(r, row, "function");
        uint32_t line = (uint32_t)result_number(r, row, "line", UINT32_MAX);
        uint64_t bytes = result_number(r, row, "bytes", INT64_MAX);
        if (r->status == GMD_OK) {
            keep(s, gmd_diff_input_add_line(s->input, file, line, function, bytes));
        }
    }
}

/* Whatever has another name is of a later gmd: it is not known here. */
static uint32_t category_named(const char *name)
{
    uint32_t category = 0;
    while (category < GMD_CATEGORIES && strcmp(gmd_category_name(category), name) != 0) {
        category++;
    }
    return category;
}

static void read_categories(side_reader *s, const json_t *categories)
{
    const char *name;
    json_t *unused;
    json_object_foreach((json_t *)(uintptr_t)categories, name, unused)
    {
        uint64_t bytes = result_number(&s->values, categories, name, INT64_MAX);
        if (s->values.status == GMD_OK && bytes) {
            keep(s, gmd_diff_input_add_category(s->input, category_named(name), bytes));
        }
    }
}

static void add_figure(side_reader *s, const char *name, uint64_t value, bool is_bytes)
{
    if (s->values.status == GMD_OK && value != GMD_STAT_UNKNOWN) {
        keep(s, gmd_diff_input_add_figure(s->input, name, value, is_bytes));
    }
}

static void read_diagnosis(side_reader *s, const json_t *root)
{
    result_reader *r = &s->values;
    const json_t *moment =
        result_member(r, root, s->is_of_end ? "end" : "peak", RESULT_OBJECT, true);
    if (!moment) {
        return;
    }
    s->allocated = result_number(r, moment, "allocated", INT64_MAX);
    read_holders(s, moment);
    read_categories(s, result_member(r, moment, "categories", RESULT_OBJECT, true));
    add_figure(s, GMD_FIGURE_RESERVED, result_figure(r, moment, "reserved"), true);
    add_figure(s, GMD_FIGURE_OOMS, result_number(r, root, "oom_count", INT64_MAX), false);
}

/* --- of runs --------------------------------------------------------------------------------- */

static uint64_t peak_of(const gmd_outcome *o)
{
    uint64_t peak = 0;
    if (o->has_stats && o->stats.allocated_bytes_peak != GMD_STAT_UNKNOWN) {
        return o->stats.allocated_bytes_peak;
    }
    for (uint32_t i = 0; i < o->phase_count; i++) {
        uint64_t bytes = o->phases[i].max_allocated;
        peak = bytes != GMD_STAT_UNKNOWN && bytes > peak ? bytes : peak;
    }
    return peak;
}

/* The last phase is what the workload left; the statistics are of after gmd's own clean-up. */
static uint64_t end_of(const gmd_outcome *o)
{
    uint64_t bytes = o->phase_count ? o->phases[o->phase_count - 1].allocated : GMD_STAT_UNKNOWN;
    if (bytes == GMD_STAT_UNKNOWN && o->has_stats) {
        bytes = o->stats.allocated_bytes;
    }
    return bytes == GMD_STAT_UNKNOWN ? 0 : bytes;
}

/* The reserved peak is what an allocator must have at all, whichever moment is compared. */
static void add_run_figures(side_reader *s, const gmd_outcome *o, const char *title)
{
    const gmd_stats *stats = &o->stats;
    const struct {
        const char *name;
        uint64_t value;
        bool is_bytes;
    } figures[] = {
        {"allocated", s->is_of_end ? end_of(o) : peak_of(o), true},
        {GMD_FIGURE_RESERVED, o->has_stats ? stats->reserved_bytes_peak : GMD_STAT_UNKNOWN, true},
        {"retries", o->has_stats ? stats->num_alloc_retries : GMD_STAT_UNKNOWN, false},
        {GMD_FIGURE_OOMS, o->has_stats ? stats->num_ooms : GMD_STAT_UNKNOWN, false},
        {"requests", o->requests, false},
        {"device calls", o->device_calls, false},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        char name[GMD_TITLE_TEXT + 32];
        snprintf(name, sizeof name, "%s%s%s", title, *title ? ": " : "", figures[i].name);
        add_figure(s, name, figures[i].value, figures[i].is_bytes);
    }
}

/* What was allocated while a line ran, or when it had run for the last time (--lines). */
static void read_lines(side_reader *s, const json_t *inspection, const gmd_outcome *o,
                       const char *title)
{
    char source[GMD_TITLE_TEXT];
    result_reader *r = &s->values;
    if (!result_member(r, inspection, "lines", RESULT_ARRAY, false)) {
        return;
    }
    outcome_source(o, source);
    const json_t *all = result_array(r, inspection, "lines", RESULT_OBJECT, UINT32_MAX);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *row = json_array_get(all, i);
        uint32_t line = (uint32_t)result_number(r, row, "line", UINT32_MAX);
        uint64_t bytes =
            result_number(r, row, s->is_of_end ? "active_bytes" : "active_bytes_peak", INT64_MAX);
        if (r->status == GMD_OK) {
            keep(s, gmd_diff_input_add_line(s->input, source, line, title, bytes));
        }
    }
}

static uint64_t sum_of(const json_t *categories)
{
    const char *name;
    json_t *bytes;
    uint64_t sum = 0;
    json_object_foreach((json_t *)(uintptr_t)categories, name, bytes)
    {
        sum += json_is_integer(bytes) ? (uint64_t)json_integer_value(bytes) : 0;
    }
    return sum;
}

/* The phase with the highest peak, or the end of the last (--timeline). */
static void read_timeline(side_reader *s, const json_t *inspection)
{
    result_reader *r = &s->values;
    if (!result_member(r, inspection, "timeline", RESULT_ARRAY, false)) {
        return;
    }
    const json_t *all = result_array(r, inspection, "timeline", RESULT_OBJECT, UINT32_MAX);
    const json_t *chosen = NULL;
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *at = result_member(r, json_array_get(all, i), s->is_of_end ? "end" : "peak",
                                         RESULT_OBJECT, true);
        chosen = !chosen || s->is_of_end || sum_of(at) > sum_of(chosen) ? at : chosen;
    }
    if (chosen && r->status == GMD_OK) {
        read_categories(s, chosen);
    }
}

/* Runs are told apart by their titles. The only one of a file has none, so that it can be compared
 * with another variant. */
static void read_runs(side_reader *s, const json_t *root, const gmd_report *report)
{
    result_reader *r = &s->values;
    bool is_replay = strcmp(report->command, "replay") == 0;
    const json_t *runs = json_object_get(root, is_replay ? "replays" : "scenarios");
    for (size_t i = 0; i < report->outcome_count && r->status == GMD_OK; i++) {
        char title[GMD_TITLE_TEXT] = "";
        const gmd_outcome *o = report->outcomes[i];
        const json_t *inspection =
            result_member(r, json_array_get(runs, i), "inspection", RESULT_OBJECT, false);
        s->allocated += s->is_of_end ? end_of(o) : peak_of(o);
        if (report->outcome_count > 1) {
            gmd_outcome_title(report, i, title);
        }
        add_run_figures(s, o, title);
        if (inspection) {
            read_lines(s, inspection, o, title);
            read_timeline(s, inspection);
        }
    }
}

static gmd_status read_run_file(side_reader *s, const char *text, size_t size)
{
    gmd_result_file *file;
    result_reader *r = &s->values;
    r->status = gmd_result_file_parse(&file, text, size, r->name, r->error);
    if (r->status == GMD_OK) {
        const gmd_report report = gmd_result_file_report(file);
        r->root = result_file_root(file);
        read_runs(s, r->root, &report);
        gmd_result_file_free(file);
    }
    return r->status;
}

/* --- the whole ------------------------------------------------------------------------------- */

static gmd_status read_side(side_reader *s, const char *text, size_t size)
{
    json_t *root;
    result_reader *r = &s->values;
    r->status = gmd_result_json_load(&root, text, size, r->name, r->error);
    if (r->status != GMD_OK) {
        return r->status;
    }
    r->root = root;
    const char *command = json_string_value(json_object_get(root, "command"));
    bool is_of_runs = command && (strcmp(command, "run") == 0 || strcmp(command, "replay") == 0);
    if (command && json_object_get(root, "gmd") && strcmp(command, "diagnose") == 0) {
        read_diagnosis(s, root);
    } else if (!is_of_runs) {
        result_refuse(r, root,
                      "expected what gmd run, replay or diagnose writes with --json%s%.40s",
                      command ? ", found \"command\": " : "", command ? command : "");
    }
    json_decref(root);
    return is_of_runs ? read_run_file(s, text, size) : r->status;
}

gmd_status gmd_compared_result_parse(gmd_diff_input *input, const char *text, size_t size,
                                     const char *name, bool is_of_end, gmd_error *error)
{
    side_reader s = {
        .values = {.name = name, .error = error}, .input = input, .is_of_end = is_of_end};
    *input = (gmd_diff_input){.name = name};
    gmd_status status = read_side(&s, text, size);
    if (status == GMD_OK) {
        status = gmd_diff_input_finish(input, s.allocated, error);
    }
    if (status != GMD_OK) {
        gmd_diff_input_free(input);
    }
    return status;
}
