/* result_file.c - write_json.c the other way round. */
#include "result_file.h"

#include "gmd_grow.h"
#include "gmd_result_json.h"
#include "outcome.h"
#include "result_gate.h"
#include "result_values.h"

#include <stdlib.h>
#include <string.h>

struct gmd_result_file {
    json_t *root; /* has the report's texts */
    gmd_report report;
    gmd_outcome **outcomes;
    gmd_case_listing **listings; /* of each */
    gmd_repeat *repeats;
    size_t repeat_capacity;
    gmd_campaign_moment *course;
    gmd_coverage coverage[GMD_COVERAGE_MAX];
    gmd_gate_result gate; /* of a gate's report */
};

static const char *const verdicts[] = {"pass", "fail", "error", "interrupted",
                                       NULL}; /* gmd_verdict */

/* --- parts of a run ---------------------------------------------------------------------- */

static void read_stats(result_reader *r, const json_t *run, gmd_outcome *o)
{
    const json_t *stats = result_member(r, run, "stats", RESULT_OBJECT, false);
    if (!stats) {
        return;
    }
    o->has_stats = true;
    o->stats = (gmd_stats){.struct_size = sizeof o->stats,
                           .allocated_bytes = result_figure(r, stats, "allocated_bytes"),
                           .allocated_bytes_peak = result_figure(r, stats, "allocated_bytes_peak"),
                           .reserved_bytes = result_figure(r, stats, "reserved_bytes"),
                           .reserved_bytes_peak = result_figure(r, stats, "reserved_bytes_peak"),
                           .active_bytes = result_figure(r, stats, "active_bytes"),
                           .active_bytes_peak = result_figure(r, stats, "active_bytes_peak"),
                           .inactive_split_bytes = result_figure(r, stats, "inactive_split_bytes"),
                           .requested_bytes = result_figure(r, stats, "requested_bytes"),
                           .allocation_count = result_figure(r, stats, "allocation_count"),
                           .segment_count = result_figure(r, stats, "segment_count"),
                           .num_alloc_retries = result_figure(r, stats, "num_alloc_retries"),
                           .num_ooms = result_figure(r, stats, "num_ooms")};
}

/* Room for the cases of so many violations or findings. NULL: there are none, or a failure. */
static gmd_case_listing *make_listings(result_reader *r, size_t count)
{
    gmd_case_listing *list = count ? calloc(count, sizeof *list) : NULL;
    if (count && !list) {
        result_fail_memory(r);
    }
    return list;
}

static gmd_case_listing *read_violations(result_reader *r, const json_t *run, gmd_outcome *o)
{
    const json_t *all = result_array(r, run, "violations", RESULT_OBJECT, GMD_VIOLATION_MAX);
    gmd_case_listing *listings = make_listings(r, json_array_size(all));
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *v = json_array_get(all, i);
        gmd_violation *violation = &o->violations[o->violation_count++];
        result_text(r, v, "oracle", violation->oracle, sizeof violation->oracle);
        result_identity(r, v, violation->oracle, &violation->identity);
        result_moment(r, v, violation);
        result_limit(r, v, violation);
        result_text(r, v, "message", violation->message, sizeof violation->message);
        result_copy(r, result_member(r, v, "case", RESULT_STRING, false), violation->case_path,
                    sizeof violation->case_path);
        result_listing(r, v, &listings[i]);
    }
    return listings;
}

static void read_phases(result_reader *r, const json_t *run, gmd_outcome *o)
{
    const json_t *all = result_array(r, run, "phases", RESULT_OBJECT, GMD_PHASE_MAX);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *v = json_array_get(all, i);
        gmd_phase *phase = &o->phases[o->phase_count++];
        result_text(r, v, "label", phase->label, sizeof phase->label);
        phase->allocated = result_figure(r, v, "allocated");
        phase->max_allocated = result_figure(r, v, "max_allocated");
        phase->reserved = result_figure(r, v, "reserved");
        phase->max_reserved = result_figure(r, v, "max_reserved");
    }
    if (result_member(r, run, "phases_dropped", RESULT_NUMBER, false)) {
        o->phases_dropped = (uint32_t)result_number(r, run, "phases_dropped", INT32_MAX);
    }
}

static void read_bounds(result_reader *r, const json_t *run, gmd_outcome *o)
{
    static const char *const figures[] = {"allocated", "reserved", NULL};
    if (!result_member(r, run, "bounds", RESULT_ARRAY, false)) {
        return;
    }
    const json_t *all = result_array(r, run, "bounds", RESULT_OBJECT, GMD_BOUND_MAX);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *v = json_array_get(all, i);
        gmd_stated_bound *bound = &o->bounds[o->bound_count++];
        bound->is_reserved = result_word(r, v, "figure", figures) == 1;
        bound->bytes = result_number(r, v, "bytes", UINT64_MAX);
        bound->peak = result_figure(r, v, "peak");
        bound->leaks = result_bool(r, v, "leaks");
        bound->is_told_only =
            result_member(r, v, "judged", RESULT_BOOL, false) && !result_bool(r, v, "judged");
        if (gmd_stated_bound_is_passed(bound)) {
            bound->passed_phase = (uint32_t)result_number(r, v, "passed_phase", UINT32_MAX);
        }
    }
}

static void read_notes(result_reader *r, const json_t *run, gmd_outcome *o)
{
    const json_t *all = result_array(r, run, "notes", RESULT_STRING, GMD_NOTE_MAX);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *v = json_array_get(all, i);
        result_copy(r, v, o->notes[o->note_count], sizeof *o->notes);
        o->note_count++;
    }
}

/* --- what replay --check found ----------------------------------------------------------- */

static void read_difference(result_reader *r, const json_t *from, gmd_check *check)
{
    const json_t *d = result_member(r, from, "first_difference", RESULT_OBJECT, false);
    if (!d) {
        return;
    }
    check->first_difference.present = true;
    check->first_difference.request = result_number(r, d, "request", UINT64_MAX);
    result_text(r, d, "what", check->first_difference.what, sizeof check->first_difference.what);
    result_text(r, d, "expected", check->first_difference.expected,
                sizeof check->first_difference.expected);
    result_text(r, d, "got", check->first_difference.got, sizeof check->first_difference.got);
    result_text(r, d, "text", check->first_difference.text, sizeof check->first_difference.text);
}

static void read_requests(result_reader *r, const json_t *from, gmd_check_quirk *quirk)
{
    enum { REQUESTS = sizeof quirk->requests / sizeof *quirk->requests };
    const json_t *all = result_array(r, from, "requests", RESULT_NUMBER, REQUESTS);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *request = json_array_get(all, i);
        if (!json_is_integer(request) || json_integer_value(request) < 0) {
            result_refuse(r, all, "[%zu]: expected a whole number from 0", i);
        }
        quirk->requests[i] = (uint64_t)json_integer_value(request);
    }
}

static void read_quirks(result_reader *r, const json_t *from, gmd_check *check)
{
    enum { QUIRKS = sizeof check->quirks / sizeof *check->quirks };
    const json_t *all = result_array(r, from, "quirks", RESULT_OBJECT, QUIRKS);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *v = json_array_get(all, i);
        gmd_check_quirk *quirk = &check->quirks[check->quirk_count++];
        result_text(r, v, "name", quirk->name, sizeof quirk->name);
        quirk->count = result_number(r, v, "count", UINT64_MAX);
        read_requests(r, v, quirk);
    }
}

static void read_check(result_reader *r, const json_t *run, gmd_check *check)
{
    const json_t *c = result_member(r, run, "check", RESULT_OBJECT, false);
    if (!c) {
        return;
    }
    check->present = true;
    check->requests = result_number(r, c, "requests", UINT64_MAX);
    check->matched = result_number(r, c, "matched", UINT64_MAX);
    check->exact = result_bool(r, c, "exact");
    check->is_cut_off = result_bool(r, c, "stopped_by_violation");
    check->cut_off_at = check->is_cut_off ? result_number(r, c, "cut_off_at", UINT64_MAX) : 0;
    read_difference(r, c, check);
    read_quirks(r, c, check);
    check->device_events = result_number(r, c, "device_events", UINT64_MAX);
    check->end_state_checked = result_bool(r, c, "end_state_checked");
    check->statistics_checked = result_bool(r, c, "statistics_checked");
    check->blocks_compared = result_number(r, c, "blocks_compared", UINT64_MAX);
    check->figures_compared = result_number(r, c, "figures_compared", UINT64_MAX);
    uint64_t limit = result_figure(r, c, "limit");
    check->limit_bytes = limit == GMD_STAT_UNKNOWN ? 0 : limit;
    check->limit_inferred = result_bool(r, c, "limit_inferred");
}

/* --- runs -------------------------------------------------------------------------------- */

static gmd_case_listing *read_run(result_reader *r, const json_t *run, gmd_outcome *o)
{
    result_text(r, run, "name", o->name, sizeof o->name);
    result_text(r, run, "kind", o->kind, sizeof o->kind);
    result_text(r, run, "variant", o->variant, sizeof o->variant);
    result_copy(r, result_member(r, run, "path", RESULT_STRING, false), o->path, sizeof o->path);
    result_oracles(r, run, o->oracles, &o->oracle_count);
    o->verdict = result_word(r, run, "verdict", verdicts);
    if (is_error(o)) {
        result_text(r, run, "error", o->error, sizeof o->error);
        o->error_status = result_bool(r, run, "bad_input") ? GMD_BAD_INPUT
                          : o->verdict == GMD_UNFINISHED   ? GMD_INTERRUPTED
                                                           : GMD_FAILED;
    }
    o->seed = result_number(r, run, "seed", UINT64_MAX);
    result_copy(r, result_member(r, run, "placement", RESULT_STRING, false), o->placement,
                sizeof o->placement);
    o->requests = result_number(r, run, "requests", UINT64_MAX);
    o->device_calls = result_number(r, run, "device_calls", UINT64_MAX);
    o->known_count = result_number(r, run, "known_violations", UINT64_MAX);
    o->seconds = result_seconds(r, run, "seconds");
    read_phases(r, run, o);
    read_bounds(r, run, o);
    if (result_member(r, run, "smallest_limit", RESULT_NUMBER, false)) {
        o->smallest_limit_bytes = result_number(r, run, "smallest_limit", UINT64_MAX);
    }
    read_stats(r, run, o);
    gmd_case_listing *listings = read_violations(r, run, o);
    read_check(r, run, &o->check);
    read_notes(r, run, o);
    return listings;
}

/* The next outcome, an empty one. */
static gmd_outcome *add_outcome(result_reader *r, gmd_result_file *result)
{
    gmd_outcome *o = calloc(1, sizeof *o);
    if (o) {
        result->outcomes[result->report.outcome_count++] = o;
    } else {
        result_fail_memory(r);
    }
    return o;
}

static bool make_outcomes(result_reader *r, gmd_result_file *result, size_t count)
{
    result->outcomes = calloc(count + 1, sizeof(gmd_outcome *));
    result->listings = calloc(count + 1, sizeof(gmd_case_listing *));
    if (!result->outcomes || !result->listings) {
        result_fail_memory(r);
    }
    return result->outcomes && result->listings && r->status == GMD_OK;
}

static void read_runs(result_reader *r, const json_t *root, const char *key,
                      gmd_result_file *result)
{
    const json_t *all = result_array(r, root, key, RESULT_OBJECT, UINT32_MAX);
    size_t count = json_array_size(all);
    if (!make_outcomes(r, result, count)) {
        return;
    }
    for (size_t i = 0; i < count && r->status == GMD_OK; i++) {
        gmd_outcome *o = add_outcome(r, result);
        if (o) {
            result->listings[i] = read_run(r, json_array_get(all, i), o);
        }
    }
}

static gmd_case_listing *read_gate_listings(result_reader *r, const json_t *root, size_t count)
{
    const json_t *gate = result_member(r, root, "gate", RESULT_OBJECT, true);
    const json_t *all = gate ? result_array(r, gate, "findings", RESULT_OBJECT, UINT32_MAX) : NULL;
    gmd_case_listing *listings = make_listings(r, count);
    for (size_t i = 0; i < count && r->status == GMD_OK; i++) {
        result_listing(r, json_array_get(all, i), &listings[i]);
    }
    return listings;
}

/* The gate is one run. One that could not begin has no parts: it is read like any other run. */
static void read_gate(result_reader *r, const json_t *root, gmd_result_file *result)
{
    result_gate(r, root, &result->gate);
    gmd_outcome *o = make_outcomes(r, result, 1) ? add_outcome(r, result) : NULL;
    if (o) {
        gmd_gate_outcome(&result->gate, o);
        result->report.gate = &result->gate;
        result->listings[0] = read_gate_listings(r, root, result->gate.finding_count);
    }
}

/* `key`: "repeats" or "placements". */
static void read_repeats(result_reader *r, const json_t *root, const char *key,
                         gmd_result_file *result)
{
    gmd_report *report = &result->report;
    if (!result_member(r, root, key, RESULT_ARRAY, false)) {
        return;
    }
    const json_t *all = result_array(r, root, key, RESULT_OBJECT, UINT32_MAX);
    size_t count = report->repeat_count + json_array_size(all);
    if (!GMD_GROW(&result->repeats, &result->repeat_capacity, count + 1) || !result->repeats) {
        result_fail_memory(r);
        return;
    }
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *v = json_array_get(all, i);
        gmd_repeat *repeat = &result->repeats[report->repeat_count++];
        repeat->is_of_placements = strcmp(key, "placements") == 0;
        repeat->first = result_number(r, v, "first_run", SIZE_MAX);
        repeat->count = result_number(r, v, "runs", SIZE_MAX);
        bool is_there = repeat->first < report->outcome_count && repeat->count > 0 &&
                        repeat->count <= report->outcome_count - repeat->first;
        if (!is_there) {
            result_refuse(r, v, "these runs are not there");
        }
    }
}

/* A result of an older gmd has none. */
static void read_course(result_reader *r, const json_t *root, gmd_result_file *result)
{
    gmd_report *report = &result->report;
    if (!result_member(r, root, "course", RESULT_ARRAY, false)) {
        return;
    }
    const json_t *all = result_array(r, root, "course", RESULT_OBJECT, UINT32_MAX);
    result->course = calloc(json_array_size(all) + 1, sizeof *result->course);
    if (!result->course) {
        result_fail_memory(r);
        return;
    }
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *v = json_array_get(all, i);
        result->course[report->course_length++] =
            (gmd_campaign_moment){.seconds = result_seconds(r, v, "seconds"),
                                  .runs = result_number(r, v, "sequences", UINT64_MAX),
                                  .requests = result_number(r, v, "requests", UINT64_MAX),
                                  .features = result_number(r, v, "features", UINT64_MAX),
                                  .inputs = result_number(r, v, "corpus", UINT64_MAX),
                                  .findings = result_number(r, v, "findings", UINT64_MAX)};
    }
    report->course = result->course;
}

static void read_coverage(result_reader *r, const json_t *root, gmd_result_file *result)
{
    gmd_report *report = &result->report;
    if (!result_member(r, root, "coverage", RESULT_ARRAY, false)) {
        return;
    }
    const json_t *all = result_array(r, root, "coverage", RESULT_OBJECT, GMD_COVERAGE_MAX);
    for (size_t i = 0; i < json_array_size(all) && r->status == GMD_OK; i++) {
        const json_t *v = json_array_get(all, i);
        gmd_coverage *c = &result->coverage[report->coverage_count++];
        result_text(r, v, "what", c->what, sizeof c->what);
        c->seen = result_number(r, v, "seen", UINT64_MAX);
    }
    report->coverage = result->coverage;
}

/* --- the whole --------------------------------------------------------------------------- */

/* What says that it failed never looks like a pass, whatever its runs say, nor the other way. */
static void check_verdict(result_reader *r, const json_t *root, const gmd_report *report)
{
    gmd_verdict stated = result_word(r, root, "verdict", verdicts);
    gmd_verdict runs = gmd_report_verdict(report);
    if (r->status == GMD_OK && stated != runs) {
        result_refuse(r, root, "\"verdict\" is \"%s\", and that of the runs together \"%s\"",
                      gmd_verdict_name(stated), gmd_verdict_name(runs));
    }
}

static void read_report(result_reader *r, gmd_result_file *result)
{
    static const char *const commands[] = {"run", "replay", "fuzz", "gate", NULL};
    static const char *const devices[] = {"sim", "cuda", NULL};
    const json_t *root = r->root;
    gmd_report *report = &result->report;
    if (!json_object_get(root, "gmd")) {
        result_refuse(r, root,
                      "expected what gmd writes with --json: an object with the key \"gmd\"");
    }
    report->version = result_string(r, root, "gmd");
    report->command = commands[result_word(r, root, "command", commands)];
    const json_t *line = result_member(r, root, "command_line", RESULT_STRING, false);
    report->command_line = json_string_value(line);
    report->allocator = result_string(r, root, "allocator");
    report->profile = json_string_value(result_member(r, root, "profile", RESULT_STRING, false));
    report->beyond = json_string_value(result_member(r, root, "beyond", RESULT_STRING, false));
    report->device = devices[result_word(r, root, "device", devices)];
    report->seed = result_number(r, root, "seed", UINT64_MAX);
    bool is_gate = strcmp(report->command, "gate") == 0;
    if (is_gate && !json_object_get(root, "scenarios")) {
        read_gate(r, root, result);
    } else {
        read_runs(r, root, strcmp(report->command, "replay") == 0 ? "replays" : "scenarios",
                  result);
    }
    read_repeats(r, root, "repeats", result);
    read_repeats(r, root, "placements", result);
    read_course(r, root, result);
    read_coverage(r, root, result);
    report->outcomes = (const gmd_outcome *const *)result->outcomes;
    report->listings = (const gmd_case_listing *const *)result->listings;
    report->repeats = result->repeats;
    check_verdict(r, root, report);
}

gmd_status gmd_result_json_load(json_t **root, const char *text, size_t size, const char *name,
                                gmd_error *error)
{
    json_error_t problem;
    *root = json_loadb(size ? text : "", size, JSON_REJECT_DUPLICATES, &problem);
    return *root ? GMD_OK
                 : gmd_fail(error, GMD_BAD_INPUT, "%.200s:%d:%d: expected JSON: %s", name,
                            problem.line, problem.column, problem.text);
}

gmd_status gmd_result_file_parse(gmd_result_file **result, const char *text, size_t size,
                                 const char *name, gmd_error *error)
{
    result_reader r = {.name = name, .error = error};
    *result = calloc(1, sizeof **result);
    if (!*result) {
        result_fail_memory(&r);
        return r.status;
    }
    r.status = gmd_result_json_load(&(*result)->root, text, size, name, error);
    if (r.status == GMD_OK) {
        r.root = (*result)->root;
        read_report(&r, *result);
    }
    if (r.status != GMD_OK) {
        gmd_result_file_free(*result);
        *result = NULL;
    }
    return r.status;
}

void gmd_result_file_free(gmd_result_file *result)
{
    if (!result) {
        return;
    }
    for (size_t i = 0; i < result->report.outcome_count; i++) {
        free(result->outcomes[i]);
        free(result->listings[i]);
    }
    free(result->listings);
    free(result->outcomes);
    free(result->repeats);
    free(result->course);
    gmd_gate_result_free(&result->gate);
    json_decref(result->root);
    free(result);
}

const json_t *result_file_root(const gmd_result_file *result)
{
    return result->root;
}

gmd_report gmd_result_file_report(const gmd_result_file *result)
{
    return result->report;
}
