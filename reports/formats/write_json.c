/* write_json.c - the JSON report. Its keys are a contract with the outside: add, never rename. */
#include "gate.h"
#include "gmd_inspect.h"
#include "gmd_json.h"
#include "gmd_report_text.h"
#include "outcome.h"
#include "placements.h"
#include "repeats.h"

#include <string.h>

static void write_stats(gmd_json *json, const gmd_outcome *outcome)
{
    if (!outcome || !outcome->has_stats) {
        gmd_json_null(json, "stats");
        return;
    }
    const gmd_stats *stats = &outcome->stats;
    gmd_json_object(json, "stats");
    figure_json(json, "allocated_bytes", stats->allocated_bytes);
    figure_json(json, "allocated_bytes_peak", stats->allocated_bytes_peak);
    figure_json(json, "reserved_bytes", stats->reserved_bytes);
    figure_json(json, "reserved_bytes_peak", stats->reserved_bytes_peak);
    figure_json(json, "active_bytes", stats->active_bytes);
    figure_json(json, "active_bytes_peak", stats->active_bytes_peak);
    figure_json(json, "inactive_split_bytes", stats->inactive_split_bytes);
    figure_json(json, "requested_bytes", stats->requested_bytes);
    figure_json(json, "allocation_count", stats->allocation_count);
    figure_json(json, "segment_count", stats->segment_count);
    figure_json(json, "num_alloc_retries", stats->num_alloc_retries);
    figure_json(json, "num_ooms", stats->num_ooms);
    gmd_json_end(json);
}

static void write_outcome_violations(gmd_json *json, const gmd_report *report, size_t index)
{
    const gmd_outcome *outcome = report->outcomes[index];
    for (uint32_t i = 0; i < outcome->violation_count; i++) {
        const gmd_violation *violation = &outcome->violations[i];
        gmd_json_object(json, NULL);
        gmd_json_string(json, "run", outcome->name);
        gmd_json_string(json, "oracle", violation->oracle);
        identity_json(json, &violation->identity);
        moment_json(json, violation);
        limit_json(json, violation);
        gmd_json_string(json, "message", violation->message);
        gmd_json_string(json, "case", *violation->case_path ? violation->case_path : NULL);
        listing_json(json, report->gate ? NULL : outcome_listing(report, index, i));
        gmd_json_end(json);
    }
}

/* Whether an earlier outcome, or an earlier place in this one, has the oracle on the same side
 * (skipped or not), so that a union lists each name once. */
static bool listed_before(const gmd_report *report, size_t outcome, uint32_t oracle)
{
    const gmd_oracle_result *result = &report->outcomes[outcome]->oracles[oracle];
    bool skipped = result->fate == GMD_ORACLE_SKIPPED;
    for (size_t i = 0; i <= outcome; i++) {
        const gmd_outcome *earlier = report->outcomes[i];
        uint32_t count = i == outcome ? oracle : earlier->oracle_count;
        for (uint32_t k = 0; k < count; k++) {
            if ((earlier->oracles[k].fate == GMD_ORACLE_SKIPPED) == skipped &&
                strcmp(earlier->oracles[k].name, result->name) == 0) {
                return true;
            }
        }
    }
    return false;
}

typedef void oracle_writer(gmd_json *json, const gmd_oracle_result *result);

static void write_oracle_name(gmd_json *json, const gmd_oracle_result *result)
{
    gmd_json_string(json, NULL, result->name);
}

static void write_oracle_reason(gmd_json *json, const gmd_oracle_result *result)
{
    gmd_json_string(json, result->name, result->reason);
}

static void write_oracle_union(gmd_json *json, const gmd_report *report, bool skipped,
                               oracle_writer *write)
{
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *outcome = report->outcomes[i];
        for (uint32_t k = 0; k < outcome->oracle_count; k++) {
            bool is_wanted = (outcome->oracles[k].fate == GMD_ORACLE_SKIPPED) == skipped;
            if (is_wanted && !listed_before(report, i, k)) {
                write(json, &outcome->oracles[k]);
            }
        }
    }
}

static void write_oracles(gmd_json *json, const gmd_report *report)
{
    gmd_json_array(json, "oracles");
    write_oracle_union(json, report, false, write_oracle_name);
    gmd_json_end(json);
    gmd_json_array(json, "skipped_oracles");
    write_oracle_union(json, report, true, write_oracle_name);
    gmd_json_end(json);
    gmd_json_object(json, "skip_reasons");
    write_oracle_union(json, report, true, write_oracle_reason);
    gmd_json_end(json);
}

/* It is what other reports tell, and are made of again. */
static void write_first_difference(gmd_json *json, const gmd_check *check)
{
    if (!check->first_difference.present) {
        gmd_json_null(json, "first_difference");
        return;
    }
    gmd_json_object(json, "first_difference");
    gmd_json_u64(json, "request", check->first_difference.request);
    gmd_json_string(json, "what", check->first_difference.what);
    gmd_json_string(json, "expected", check->first_difference.expected);
    gmd_json_string(json, "got", check->first_difference.got);
    gmd_json_string(json, "text", check->first_difference.text);
    gmd_json_end(json);
}

static void write_quirks(gmd_json *json, const gmd_check *check)
{
    gmd_json_array(json, "quirks");
    for (uint32_t i = 0; i < check->quirk_count; i++) {
        const gmd_check_quirk *q = &check->quirks[i];
        gmd_json_row(json, NULL);
        gmd_json_string(json, "name", q->name);
        gmd_json_u64(json, "count", q->count);
        gmd_json_array(json, "requests");
        for (uint64_t k = 0; k < q->count && k < sizeof q->requests / sizeof *q->requests; k++) {
            gmd_json_u64(json, NULL, q->requests[k]);
        }
        gmd_json_end(json);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void write_check(gmd_json *json, const gmd_check *check)
{
    gmd_json_object(json, "check");
    gmd_json_u64(json, "requests", check->requests);
    gmd_json_u64(json, "matched", check->matched);
    gmd_json_bool(json, "exact", check->exact);
    gmd_json_bool(json, "stopped_by_violation", check->is_cut_off);
    if (check->is_cut_off) {
        gmd_json_u64(json, "cut_off_at", check->cut_off_at);
    }
    write_first_difference(json, check);
    write_quirks(json, check);
    gmd_json_u64(json, "device_events", check->device_events);
    gmd_json_bool(json, "end_state_checked", check->end_state_checked);
    gmd_json_bool(json, "statistics_checked", check->statistics_checked);
    gmd_json_u64(json, "blocks_compared", check->blocks_compared);
    gmd_json_u64(json, "figures_compared", check->figures_compared);
    figure_json(json, "limit", check->limit_bytes ? check->limit_bytes : GMD_STAT_UNKNOWN);
    gmd_json_bool(json, "limit_inferred", check->limit_inferred);
    gmd_json_end(json);
}

static void write_phase_doubt(gmd_json *json, const gmd_phase *phase)
{
    gmd_phase least, most;
    if (phase_doubt(phase, &least, &most)) {
        gmd_json_row(json, "least");
        phase_figures_json(json, &least);
        gmd_json_end(json);
        gmd_json_row(json, "most");
        phase_figures_json(json, &most);
        gmd_json_end(json);
    }
}

static void write_phases(gmd_json *json, const gmd_outcome *outcome)
{
    gmd_json_array(json, "phases");
    for (uint32_t i = 0; i < outcome->phase_count; i++) {
        const gmd_phase *phase = &outcome->phases[i];
        gmd_json_row(json, NULL);
        gmd_json_string(json, "label", phase->label);
        phase_figures_json(json, phase);
        write_phase_doubt(json, phase);
        gmd_json_end(json);
    }
    gmd_json_end(json);
    if (outcome->phases_dropped) {
        gmd_json_u64(json, "phases_dropped", outcome->phases_dropped);
    }
}

static void write_bounds(gmd_json *json, const gmd_outcome *outcome)
{
    gmd_json_array(json, "bounds");
    for (uint32_t i = 0; i < outcome->bound_count; i++) {
        const gmd_stated_bound *bound = &outcome->bounds[i];
        gmd_json_row(json, NULL);
        gmd_json_string(json, "figure", bound->is_reserved ? "reserved" : "allocated");
        gmd_json_u64(json, "bytes", bound->bytes);
        figure_json(json, "peak", bound->peak);
        gmd_json_bool(json, "held", !gmd_stated_bound_is_passed(bound));
        gmd_json_bool(json, "leaks", bound->leaks);
        gmd_json_bool(json, "judged", !bound->is_told_only);
        if (gmd_stated_bound_is_passed(bound)) {
            gmd_json_u64(json, "passed_phase", bound->passed_phase);
        }
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void write_workspace_error(gmd_json *json, const char *name, uint64_t bytes)
{
    const gmd_workspace_error error = gmd_workspace_error_of(bytes);
    gmd_json_object(json, name);
    gmd_json_u64(json, "allocated", error.allocated);
    gmd_json_u64(json, "max_allocated", error.max_allocated);
    gmd_json_u64(json, "reserved", error.reserved);
    gmd_json_u64(json, "max_reserved", error.max_reserved);
    gmd_json_end(json);
}

static void write_workspaces(gmd_json *json, const gmd_workspace_use *use)
{
    gmd_json_object(json, "workspaces");
    gmd_json_u64(json, "recorded", use->recorded);
    gmd_json_u64(json, "estimated", use->estimated);
    write_workspace_error(json, "median_error", use->median_error);
    write_workspace_error(json, "worst_error", use->worst_error);
    gmd_json_end(json);
}

static void write_outcome(gmd_json *json, const gmd_report *report, size_t index)
{
    const gmd_outcome *outcome = report->outcomes[index];
    const gmd_inspection *inspection = report->inspections ? report->inspections[index] : NULL;
    gmd_json_object(json, NULL);
    gmd_json_string(json, "name", outcome->name);
    gmd_json_string(json, "kind", outcome->kind);
    gmd_json_string(json, "variant", outcome->variant);
    if (*outcome->path) {
        gmd_json_string(json, "path", outcome->path);
    }
    gmd_json_string(json, "verdict", gmd_verdict_name(outcome->verdict));
    if (is_error(outcome)) {
        gmd_json_string(json, "error", outcome->error);
        gmd_json_bool(json, "bad_input", outcome->error_status == GMD_BAD_INPUT);
    }
    gmd_json_u64(json, "seed", outcome->seed);
    if (*outcome->placement) {
        gmd_json_string(json, "placement", outcome->placement);
    }
    gmd_json_u64(json, "requests", outcome->requests);
    gmd_json_u64(json, "device_calls", outcome->device_calls);
    gmd_json_u64(json, "known_violations", outcome->known_count);
    gmd_json_exact(json, "seconds", outcome->seconds);
    write_phases(json, outcome);
    if (outcome->bound_count) {
        write_bounds(json, outcome);
    }
    if (outcome->smallest_limit_bytes) {
        gmd_json_u64(json, "smallest_limit", outcome->smallest_limit_bytes);
    }
    if (outcome->workspaces.recorded || outcome->workspaces.estimated) {
        write_workspaces(json, &outcome->workspaces);
    }
    write_stats(json, outcome);
    gmd_json_array(json, "violations");
    write_outcome_violations(json, report, index);
    gmd_json_end(json);
    oracles_json(json, outcome->oracles, outcome->oracle_count);
    if (outcome->check.present) {
        write_check(json, &outcome->check);
    }
    gmd_json_array(json, "notes");
    for (uint32_t i = 0; i < outcome->note_count; i++) {
        gmd_json_string(json, NULL, outcome->notes[i]);
    }
    gmd_json_end(json);
    gmd_inspection_json(json, inspection);
    gmd_json_end(json);
}

/* The check that a reader of one verdict wants: the first that differs, else the first. */
static const gmd_check *telling_check(const gmd_report *report)
{
    const gmd_check *telling = NULL;
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_check *check = &report->outcomes[i]->check;
        if (check->present && (!telling || (telling->exact && !check->exact))) {
            telling = check;
        }
    }
    return telling;
}

/* An interruption comes before what could not be run, as in the verdict. */
static void write_error(gmd_json *json, const gmd_report *report)
{
    gmd_verdict verdict = gmd_report_verdict(report);
    for (size_t i = 0; i < report->outcome_count; i++) {
        bool is_meant = is_error(report->outcomes[i]) &&
                        (verdict != GMD_UNFINISHED || report->outcomes[i]->verdict == verdict);
        if (is_meant) {
            gmd_json_string(json, "error", report->outcomes[i]->error);
            return;
        }
    }
    gmd_json_string(json, "error", "nothing was run");
}

/* With several runs a note says which one it is about. */
static void write_notes(gmd_json *json, const gmd_report *report)
{
    char text[sizeof report->outcomes[0]->name + sizeof *report->outcomes[0]->notes + 2];
    gmd_json_array(json, "notes");
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *outcome = report->outcomes[i];
        for (uint32_t k = 0; k < outcome->note_count; k++) {
            snprintf(text, sizeof text, "%s%s%s", report->outcome_count > 1 ? outcome->name : "",
                     report->outcome_count > 1 ? ": " : "", outcome->notes[k]);
            gmd_json_string(json, NULL, text);
        }
    }
    gmd_json_end(json);
}

static void write_course(gmd_json *json, const gmd_report *report)
{
    if (!report->course_length) {
        return;
    }
    gmd_json_array(json, "course");
    for (size_t i = 0; i < report->course_length; i++) {
        const gmd_campaign_moment *m = &report->course[i];
        gmd_json_row(json, NULL);
        gmd_json_exact(json, "seconds", m->seconds);
        gmd_json_u64(json, "sequences", m->runs);
        gmd_json_u64(json, "requests", m->requests);
        gmd_json_u64(json, "features", m->features);
        gmd_json_u64(json, "corpus", m->inputs);
        gmd_json_u64(json, "findings", m->findings);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void write_coverage(gmd_json *json, const gmd_report *report)
{
    if (!report->coverage_count) {
        return;
    }
    gmd_json_array(json, "coverage");
    for (size_t i = 0; i < report->coverage_count; i++) {
        gmd_json_row(json, NULL);
        gmd_json_string(json, "what", report->coverage[i].what);
        gmd_json_u64(json, "seen", report->coverage[i].seen);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void write_summary(gmd_json *json, const gmd_report *report)
{
    gmd_json_string(json, "gmd", report->version);
    gmd_json_string(json, "command", report->command);
    if (report->command_line) {
        gmd_json_string(json, "command_line", report->command_line);
    }
    gmd_json_string(json, "allocator", report->allocator);
    if (report->profile) {
        gmd_json_string(json, "profile", report->profile);
    }
    if (report->beyond) {
        gmd_json_string(json, "beyond", report->beyond);
    }
    gmd_json_string(json, "device", report->device);
    gmd_json_u64(json, "seed", report->seed);
    gmd_json_string(json, "verdict", gmd_verdict_name(gmd_report_verdict(report)));
    if (gmd_report_verdict(report) > GMD_FAIL) {
        write_error(json, report);
    }
    gmd_json_u64(json, "requests", report_requests(report));
    gmd_json_double(json, "seconds", report_seconds(report));
    gmd_json_array(json, "violations");
    for (size_t i = 0; i < report->outcome_count; i++) {
        write_outcome_violations(json, report, i);
    }
    gmd_json_end(json);
    write_oracles(json, report);
}

static void write_outcomes(gmd_json *json, const gmd_report *report)
{
    gmd_json_array(json, strcmp(report->command, "replay") == 0 ? "replays" : "scenarios");
    for (size_t i = 0; i < report->outcome_count; i++) {
        write_outcome(json, report, i);
    }
    gmd_json_end(json);
}

gmd_status gmd_report_json(const gmd_report *report, FILE *out, gmd_error *error)
{
    const gmd_outcome *last_with_stats = NULL;
    for (size_t i = 0; i < report->outcome_count; i++) {
        last_with_stats = report->outcomes[i]->has_stats ? report->outcomes[i] : last_with_stats;
    }
    const gmd_check *check = telling_check(report);
    gmd_json json;
    gmd_json_start(&json, out);
    gmd_json_object(&json, NULL);
    write_summary(&json, report);
    write_stats(&json, last_with_stats);
    write_notes(&json, report);
    if (check) {
        write_check(&json, check);
    }
    repeats_json(&json, report);
    placements_json(&json, report);
    write_course(&json, report);
    write_coverage(&json, report);
    if (report->gate) {
        gate_json(&json, report);
    } else {
        write_outcomes(&json, report);
    }
    gmd_json_end(&json);
    gmd_json_finish(&json);
    return gmd_finish_writing(out, "the JSON report", error);
}
