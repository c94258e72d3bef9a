#include "results.h"

#include "distinct.h"
#include "page.h"

#include "gmd_grow.h"
#include "gmd_gzip_stream.h"
#include "gmd_oracle.h"
#include "gmd_output.h"
#include "gmd_size.h"
#include "gmd_store.h"
#include "gmd_text.h"
#include "version.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void cli_results_open(cli_results *results, const cli_options *options, const char *command)
{
    *results = (cli_results){.options = options,
                             .command = command,
                             .keeps_timelines = options->perfetto_path != NULL,
                             .keeps_journals = options->snapshot_path || options->html_path,
                             .holds_one_run = options->snapshot_path != NULL};
}

/* Room for one more in each of the lists. */
static bool reserve(cli_results *r)
{
    size_t needed = r->count + 1, inspections = r->capacity, timelines = r->capacity,
           journals = r->capacity,
           listings = r->capacity; /* the lists have one size unless a growth failed */
    return GMD_GROW(&r->inspections, &inspections, needed) &&
           GMD_GROW(&r->timelines, &timelines, needed) &&
           GMD_GROW(&r->journals, &journals, needed) && GMD_GROW(&r->listings, &listings, needed) &&
           GMD_GROW(&r->items, &r->capacity, needed);
}

static gmd_outcome *add_outcome(cli_results *results)
{
    gmd_outcome *outcome = reserve(results) ? calloc(1, sizeof *outcome) : NULL;
    if (outcome) {
        results->inspections[results->count] = NULL;
        results->timelines[results->count] = NULL;
        results->journals[results->count] = NULL;
        results->listings[results->count] = NULL;
        results->items[results->count++] = outcome;
    }
    return outcome;
}

void cli_results_recorded(cli_results *results, gmd_snapshot *recorded)
{
    gmd_snapshot_free(&results->recorded);
    results->recorded = *recorded;
    results->has_recorded = true;
    *recorded = (gmd_snapshot){0};
}

void cli_results_inspected(cli_results *results, gmd_inspection *inspection)
{
    results->inspections[results->count - 1] = inspection;
}

gmd_status cli_results_repeated(cli_results *results, size_t first, bool of_placements,
                                gmd_error *error)
{
    if (!GMD_GROW(&results->repeats, &results->repeat_capacity, results->repeat_count + 1)) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the results");
    }
    results->repeats[results->repeat_count++] =
        (gmd_repeat){first, results->count - first, of_placements};
    return GMD_OK;
}

void cli_results_cover(cli_results *results, const char *what, uint64_t seen)
{
    if (results->coverage_count < GMD_COVERAGE_MAX) {
        gmd_coverage *c = &results->coverage[results->coverage_count++];
        snprintf(c->what, sizeof c->what, "%s", what);
        c->seen = seen;
    }
}

gmd_outcome *cli_results_add(cli_results *results, const char *name, const char *kind)
{
    gmd_outcome *outcome = add_outcome(results);
    if (outcome) {
        snprintf(outcome->name, sizeof outcome->name, "%s", name);
        snprintf(outcome->kind, sizeof outcome->kind, "%s", kind);
    }
    return outcome;
}

void cli_results_add_error(cli_results *results, const char *name, const char *kind,
                           gmd_status status, const gmd_error *error)
{
    gmd_outcome *outcome = add_outcome(results);
    if (outcome) {
        outcome->verdict = status == GMD_INTERRUPTED ? GMD_UNFINISHED : GMD_ERROR;
        outcome->error_status = status;
        snprintf(outcome->name, sizeof outcome->name, "%s", name);
        snprintf(outcome->kind, sizeof outcome->kind, "%s", kind);
        snprintf(outcome->error, sizeof outcome->error, "%s", error->text);
    }
}

void cli_results_end(cli_results *results, const char *name, gmd_status status,
                     const gmd_error *error)
{
    const gmd_outcome *last = results->count ? results->items[results->count - 1] : NULL;
    bool is_told = status == GMD_INTERRUPTED && last && last->verdict == GMD_UNFINISHED;
    if (status != GMD_OK && !is_told) {
        cli_results_add_error(results, name, "input", status, error);
    }
}

typedef gmd_status report_writer(const gmd_report *report, FILE *out, gmd_error *error);

static gmd_status write_to(const char *path, const gmd_report *report, report_writer *writer,
                           gmd_error *error)
{
    if (!path) {
        return GMD_OK;
    }
    gmd_output out;
    gmd_status status = gmd_output_open(&out, path, error);
    if (status != GMD_OK) {
        return status;
    }
    if (gmd_text_ends_with(path, ".gz")) {
        out.stream = gmd_gzip_stream(out.stream);
    }
    status = out.stream ? writer(report, out.stream, error)
                        : gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory to compress", path);
    return gmd_output_close(&out, status, error);
}

static bool goes_to_stdout(const cli_options *o)
{
    return cli_stdout_reports(o) > 0;
}

static int status_of_outcome(const gmd_outcome *outcome)
{
    switch (outcome->verdict) {
    case GMD_PASS:
        return CLI_EXIT_OK;
    case GMD_FAIL:
        return CLI_EXIT_FINDING;
    default:
        return cli_exit_status(outcome->error_status);
    }
}

static int status_of(const gmd_outcome *const *outcomes, size_t count)
{
    int status = CLI_EXIT_OK;
    for (size_t i = 0; i < count; i++) {
        int one = status_of_outcome(outcomes[i]);
        status = one > status ? one : status;
    }
    return status;
}

/* Where nothing could be run, the message on standard error says it all. */
static bool has_run(const cli_results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        const gmd_outcome *o = results->items[i];
        if (o->verdict != GMD_ERROR || o->violation_count) {
            return true;
        }
    }
    return results->gate != NULL; /* interrupted: what was judged until then is there */
}

/* No input could be read: there is nothing to show, and the page of before stays. */
static bool is_unreadable(const cli_results *results)
{
    bool is_bad = results->count > 0 && !has_run(results);
    for (size_t i = 0; i < results->count; i++) {
        is_bad = is_bad && results->items[i]->error_status == GMD_BAD_INPUT;
    }
    return is_bad;
}

static gmd_status add_report(gmd_page *page, const void *context, gmd_error *error)
{
    return gmd_page_add_report(page, context, error);
}

static gmd_status write_html(const gmd_report *report, FILE *out, gmd_error *error)
{
    return cli_page_write_to(out, add_report, report, error);
}

typedef struct report_form {
    const char *path;
    report_writer *write;
} report_form;

/* Each that can be written is; the others are told. The first failure. `html_path`: NULL for no
 * page. */
static gmd_status write_files(const cli_options *options, const gmd_report *report,
                              const char *html_path, const char *speaker)
{
    const report_form files[] = {{options->json_path, gmd_report_json},
                                 {options->junit_path, gmd_report_junit},
                                 {options->markdown_path, gmd_report_markdown},
                                 {options->sarif_path, gmd_report_sarif},
                                 {options->openmetrics_path, gmd_report_openmetrics},
                                 {options->perfetto_path, gmd_report_perfetto},
                                 {options->snapshot_path, gmd_report_snapshot},
                                 {html_path, write_html}};
    gmd_error error = {""};
    gmd_status status = fflush(stdout) == 0 && !ferror(stdout)
                            ? GMD_OK
                            : gmd_fail(&error, GMD_FAILED, "standard output: writing failed");
    if (status != GMD_OK) {
        fprintf(stderr, "%s: %s\n", speaker, error.text);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        gmd_status one = write_to(files[i].path, report, files[i].write, &error);
        if (one != GMD_OK) {
            fprintf(stderr, "%s: %s\n", speaker, error.text);
            status = GMD_FAILED; /* it could be written before the run */
        }
    }
    return status;
}

static size_t list_rules(gmd_report_rule rules[GMD_ORACLE_MAX])
{
    size_t count = 0;
    for (; gmd_oracles[count] && count < GMD_ORACLE_MAX; count++) {
        rules[count] = (gmd_report_rule){gmd_oracles[count]->entry->name,
                                         gmd_oracles[count]->entry->holds_when};
    }
    return count;
}

/* Runs under other conditions are no history of each other. */
static void describe_conditions(const cli_options *o, char *text, size_t size)
{
    char capacity[24] = "", limit[24] = "", devices[16] = "";
    if (o->has_capacity) {
        gmd_format_exact_size(o->run.conditions.capacity_bytes, capacity);
    }
    if (o->run.conditions.limit_bytes) {
        gmd_format_exact_size(o->run.conditions.limit_bytes, limit);
    }
    if (o->has_devices) {
        snprintf(devices, sizeof devices, "%" PRIu32, o->run.conditions.device_count);
    }
    const struct {
        const char *option, *value;
    } given[] = {{"--conf", o->run.conditions.conf},
                 {"--capacity", capacity},
                 {"--limit", limit},
                 {"--devices", devices},
                 {"--placement", o->placement_text},
                 {"--schedule", o->schedule_text},
                 {"--interleave", o->interleave_text}};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof given / sizeof *given && used < size; i++) {
        if (given[i].value && *given[i].value) {
            used += (size_t)snprintf(text + used, size - used, "%s%s %s", used ? " " : "",
                                     given[i].option, given[i].value);
        }
    }
}

/* What they are made of, as far as it is there. */
typedef struct report_parts {
    gmd_report_rule rules[GMD_ORACLE_MAX];
    char conditions[500];
} report_parts;

static gmd_report make_report(const cli_results *results, report_parts *parts)
{
    const cli_options *options = results->options;
    describe_conditions(options, parts->conditions, sizeof parts->conditions);
    return (gmd_report){.version = GMD_VERSION,
                        .command = results->command,
                        .allocator = options->run.subject.allocator,
                        .profile = options->profile,
                        .beyond = options->beyond,
                        .device = options->run.device.kind == GMD_DEVICE_SIM ? "sim" : "cuda",
                        .conditions = parts->conditions,
                        .seed = options->run.seed,
                        .rules = parts->rules,
                        .rule_count = list_rules(parts->rules),
                        .outcomes = (const gmd_outcome *const *)results->items,
                        .outcome_count = results->count,
                        .inspections = (const gmd_inspection *const *)results->inspections,
                        .timelines = (const gmd_timeline *const *)results->timelines,
                        .journals = (const gmd_journal *const *)results->journals,
                        .recorded = results->has_recorded ? &results->recorded : NULL,
                        .repeats = results->repeats,
                        .repeat_count = results->repeat_count,
                        .course = results->course,
                        .course_length = results->course_length,
                        .coverage = results->coverage,
                        .coverage_count = results->coverage_count,
                        .gate = results->gate,
                        .listings = (const gmd_case_listing *const *)results->listings,
                        .found = results->found,
                        .found_count = results->found_count,
                        .replay_options = results->replay_options,
                        .hang_s = results->hang_s,
                        .reruns = results->reruns,
                        .rerun_count = results->rerun_count};
}

static bool is_silent(const cli_results *results)
{
    return results->options->quiet || goes_to_stdout(results->options) || !has_run(results);
}

static gmd_terminal terminal_of(const cli_results *results)
{
    gmd_terminal terminal = gmd_terminal_for(stdout, false);
    terminal.verbose = results->options->verbose;
    return terminal;
}

static void show_runs(cli_results *results, const gmd_report *report)
{
    gmd_terminal terminal = terminal_of(results);
    for (; results->told < results->count; results->told++) {
        bool is_hidden =
            results->hides_passes && results->items[results->told]->verdict == GMD_PASS;
        if (!is_hidden) {
            gmd_report_terminal_run(report, results->told, !results->has_shown, stdout, terminal);
            results->has_shown = true;
        }
    }
}

void cli_results_done(cli_results *results)
{
    report_parts parts;
    cli_tell_apart(results->items[results->count - 1], results->inputs, results->input_count);
    if (!is_silent(results)) {
        const gmd_report report = make_report(results, &parts);
        show_runs(results, &report);
    }
}

static void show_end(cli_results *results, const gmd_report *report)
{
    if (is_silent(results)) {
        return;
    }
    if (!report->gate) {
        show_runs(results, report);
    }
    gmd_report_terminal_end(report, !results->has_shown, stdout, terminal_of(results));
}

static void tell_errors(const cli_results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        if (results->items[i]->verdict > GMD_FAIL) {
            fprintf(stderr, "gmd %s: %s\n", results->speaker ? results->speaker : results->command,
                    results->items[i]->error);
        }
    }
}

gmd_status cli_results_add_to_page(const cli_results *results, gmd_page *page, int *exit_status,
                                   gmd_error *error)
{
    report_parts parts;
    const gmd_report report = make_report(results, &parts);
    if (is_unreadable(results)) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s", results->items[0]->error);
    }
    tell_errors(results);
    *exit_status = status_of(report.outcomes, report.outcome_count);
    return gmd_page_add_report(page, &report, error);
}

int cli_results_report(cli_results *results)
{
    report_parts parts;
    gmd_error error = {""};
    const cli_options *options = results->options;
    const gmd_report report = make_report(results, &parts);
    show_end(results, &report);
    const char *html_path = is_unreadable(results) ? NULL : options->html_path;
    gmd_status status = write_files(options, &report, html_path, "gmd");
    if (options->store_path &&
        gmd_store_add(options->store_path, &report, time(NULL), &error) != GMD_OK) {
        fprintf(stderr, "gmd: %s\n", error.text);
        status = GMD_FAILED;
    }
    tell_errors(results);
    return status == GMD_OK ? status_of(report.outcomes, report.outcome_count) : CLI_EXIT_FAILURE;
}

int cli_results_rewrite(gmd_report report, const cli_options *options)
{
    gmd_report_rule rules[GMD_ORACLE_MAX];
    report.rules = rules;
    report.rule_count = list_rules(rules);
    gmd_status status = write_files(options, &report, options->html_path, "gmd report");
    if (status != GMD_OK) {
        return cli_exit_status(status);
    }
    /* Where nothing was run, nothing was checked. */
    return report.outcome_count ? status_of(report.outcomes, report.outcome_count)
                                : CLI_EXIT_FAILURE;
}

void cli_results_free(cli_results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        free(results->items[i]);
        gmd_inspection_close(results->inspections[i]);
        gmd_timeline_close(results->timelines[i]);
        gmd_journal_close(results->journals[i]);
        free(results->listings[i]);
    }
    free(results->listings);
    gmd_snapshot_free(&results->recorded);
    free(results->journals);
    free(results->inspections);
    free(results->timelines);
    free(results->items);
    free(results->repeats);
    free(results->found);
    *results = (cli_results){0};
}
