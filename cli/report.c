/* report.c - gmd report INPUT -o FILE: a run in the form that FILE's ending names, a case as a
 * program that needs no gmd, or how the figures of stored runs changed. */
#include "commands.h"
#include "inputs.h"
#include "interruption.h"
#include "page_inputs.h"
#include "play_inputs.h"
#include "reproduce.h"
#include "results.h"
#include "variants.h"
#include "writable.h"

#include "gmd_file.h"
#include "gmd_known.h"
#include "gmd_result_file.h"
#include "gmd_size.h"
#include "gmd_store.h"
#include "gmd_text.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_ORACLE = 0x600, KEY_HISTORY, KEY_LAST };
enum { OUTPUT_MAX = 16 };

/* What FILE can end with, longer endings before those that they end with. */
typedef struct format {
    const char *ending;
    size_t slot;                 /* of cli_options: where the path of such a report goes */
    cli_reproduce_fn *reproduce; /* makes a program of a case, which is not run */
    bool of_results;             /* can be made of what --json wrote */
} format;

static const format formats[] = {
    {".md", offsetof(cli_options, markdown_path), NULL, true},
    {".xml", offsetof(cli_options, junit_path), NULL, true},
    {".sarif.json", offsetof(cli_options, sarif_path), NULL, true},
    {".sarif", offsetof(cli_options, sarif_path), NULL, true},
    {".json", offsetof(cli_options, json_path), NULL, false},
    {".prom", offsetof(cli_options, openmetrics_path), NULL, true},
    {".om", offsetof(cli_options, openmetrics_path), NULL, true},
    {".pftrace", offsetof(cli_options, perfetto_path), NULL, false},
    {".perfetto-trace", offsetof(cli_options, perfetto_path), NULL, false},
    {".html", offsetof(cli_options, html_path), NULL, true},
    {".htm", offsetof(cli_options, html_path), NULL, true},
    {".pickle", offsetof(cli_options, snapshot_path), NULL, false},
    {".pickle.gz", offsetof(cli_options, snapshot_path), NULL, false},
    {".c", 0, gmd_reproducer_write_c, false},
    {".py", 0, gmd_reproducer_write_python, false},
};

typedef struct report_arguments {
    cli_options common;
    const char *input; /* the first */
    const char *inputs[CLI_PAGE_INPUTS_MAX];
    size_t input_count;
    const char
        *page_path; /* of recordings and results, or of several inputs; NULL: not asked for */
    const char *outputs[OUTPUT_MAX];
    const format *formats[OUTPUT_MAX]; /* of the outputs */
    size_t output_count;
    char *params[CLI_PARAM_MAX];
    size_t param_count;
    const char *oracle;
    const char *history; /* a store, to be shown instead of an input */
    uint64_t last;
} report_arguments;

static const struct argp_option report_options[] = {
    {"output", 'o', "FILE", 0,
     "where to, and as what (more than one is possible): .md Markdown, .xml JUnit, .json, .sarif, "
     ".prom or .om OpenMetrics, .html for a browser, .pftrace for ui.perfetto.dev, .pickle or "
     ".pickle.gz for "
     "pytorch.org/memory_viz; of a case also .c: a C program that makes its requests by itself, "
     ".py: a script that makes them of PyTorch's own allocator",
     1},
    {"oracle", KEY_ORACLE, "NAME", 0,
     "for .c and .py: which verdict it is to show, if the case does not say: an oracle, or a kind "
     "(gmd run --list-oracles)",
     1},
    {"history", KEY_HISTORY, "FILE", 0,
     "instead of an input: the runs in a file of --store, each workload's beside each other", 1},
    {"last", KEY_LAST, "N", 0, "with --history: the last N runs of each workload (10)", 1},
    {0},
};

/* --- arguments ----------------------------------------------------------------------------- */

/* A file of any name, and not what `gmd run` takes: a scenario has no '/' in its name. */
static bool is_snapshot(const char *input)
{
    bool is_file = strchr(input, '/') || gmd_text_ends_with(input, ".pickle") ||
                   gmd_text_ends_with(input, ".pickle.gz") || gmd_text_ends_with(input, ".pkl");
    return is_file && !gmd_text_ends_with(input, ".gmd") && !gmd_text_ends_with(input, ".lua") &&
           !cli_is_result(input);
}

static const format *format_of(const char *path)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (gmd_text_ends_with(path, formats[i].ending)) {
            return &formats[i];
        }
    }
    return NULL;
}

static bool is_page(const format *f)
{
    return f->slot == offsetof(cli_options, html_path) && !f->reproduce;
}

static void refuse_ending(const char *path, struct argp_state *state)
{
    char list[200];
    size_t used = 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? " " : "",
                                 formats[i].ending);
    }
    if (strcmp(path, "-") == 0) {
        argp_error(state,
                   "-o -: the name says the format: expected FILE with one of the endings "
                   "%s (--json - writes to standard output)",
                   list);
    }
    argp_error(state, "-o %s: expected FILE with one of the endings %s", path, list);
}

static void add_output(report_arguments *a, const char *path, struct argp_state *state)
{
    const format *f = format_of(path);
    if (!f) {
        refuse_ending(path, state);
        return;
    }
    if (a->output_count == OUTPUT_MAX) {
        argp_error(state, "-o %s: more than %d files", path, OUTPUT_MAX);
    }
    if (!f->reproduce) {
        a->common.runs_nothing = false;
    }
    a->formats[a->output_count] = f;
    a->outputs[a->output_count++] = path;
}

static void add_param(report_arguments *a, char *text, struct argp_state *state)
{
    if (a->param_count == CLI_PARAM_MAX) {
        argp_error(state, "more than %d parameters", CLI_PARAM_MAX);
    }
    a->params[a->param_count++] = text;
}

static void add_input(report_arguments *a, char *text, struct argp_state *state)
{
    if (cli_is_parameter(text)) {
        add_param(a, text, state);
    } else if (a->input_count == CLI_PAGE_INPUTS_MAX) {
        argp_error(state, "more than %d inputs", CLI_PAGE_INPUTS_MAX);
    } else {
        a->inputs[a->input_count++] = text;
        a->input = a->inputs[0];
    }
}

/* Puts the path where the writers look: from here on it is as if the option had been given. */
static void place_output(report_arguments *a, size_t index, struct argp_state *state)
{
    gmd_error error = {""};
    const char *path = a->outputs[index];
    const format *f = a->formats[index];
    if (cli_probe_file(path, &error) != GMD_OK) {
        argp_error(state, "-o %s", error.text);
    }
    if (f->reproduce) {
        if (!gmd_text_ends_with(a->input, ".gmd")) {
            argp_error(state, "-o %s: a program is made of a .gmd case, and %s is none", path,
                       a->input);
        }
        return;
    }
    if (cli_is_result(a->input) && f->slot == offsetof(cli_options, json_path)) {
        argp_error(state, "-o %s: %s is the JSON result already", path, a->input);
    } else if (cli_is_result(a->input) && !f->of_results) {
        argp_error(state,
                   "-o %s: is made of the run's events, which no JSON result has: give the case, "
                   "the snapshot or the scenario itself",
                   path);
    }
    bool is_read = is_snapshot(a->input) || cli_is_result(a->input);
    bool is_own_page = is_page(f) && (a->input_count > 1 || is_read);
    const char **slot = is_own_page ? &a->page_path : (const char **)((char *)&a->common + f->slot);
    if (*slot) {
        argp_error(state, "-o %s: %s is such a report already, and there can be one of each", path,
                   *slot);
    }
    *slot = path;
}

/* A usage error ends the program: nothing after it is reached. */
static void check_arguments(report_arguments *a, struct argp_state *state)
{
    char names[600];
    if (a->history && (a->input || a->output_count || a->common.has_allocator || a->oracle)) {
        argp_error(state, "--history goes with --last only: it shows runs, and makes none");
    }
    if (a->history) {
        return;
    }
    if (!a->input) {
        argp_error(state,
                   "expected a .gmd case, a PyTorch memory snapshot, a scenario, or a result of "
                   "--json");
        return;
    }
    if (!a->output_count) {
        argp_error(state, "expected -o FILE");
    }
    if (a->oracle && !cli_is_verdict(a->oracle)) {
        gmd_oracle_names(names, sizeof names);
        argp_error(state,
                   "--oracle %s: there is no such oracle or kind; there are %s (and their kinds: "
                   "gmd run --list-oracles)",
                   a->oracle, names);
    }
    if (cli_is_result(a->input) &&
        (a->param_count || a->common.has_allocator || a->common.store_path)) {
        argp_error(state, "%s: is a result, and nothing is run: it has no %s", a->input,
                   a->param_count            ? "parameters"
                   : a->common.has_allocator ? "other allocator"
                                             : "conditions for --store");
    }
    if (cli_is_result(a->input) &&
        (a->common.perfetto_path || a->common.snapshot_path || a->common.json_path)) {
        argp_error(state,
                   "%s: --json, --perfetto and --snapshot are of a run, and of a result nothing is "
                   "run",
                   a->input);
    }
    if (a->param_count && is_snapshot(a->input)) {
        argp_error(state, "%s: a snapshot has no parameter '%s'", a->input, a->params[0]);
    }
    for (size_t i = 0; i < a->output_count; i++) {
        if (a->input_count > 1 && !is_page(a->formats[i])) {
            argp_error(state, "-o %s: expected one input, found '%s' as well", a->outputs[i],
                       a->inputs[1]);
        }
        place_output(a, i, state);
    }
    for (size_t i = 0; i < a->input_count; i++) {
        cli_refuse_overwriting(state, &a->common, a->inputs[i]);
        if (a->page_path && cli_is_same_file(a->page_path, a->inputs[i])) {
            argp_error(state, "-o %s: is the same file as %s, which is read", a->page_path,
                       a->inputs[i]);
        }
    }
}

static error_t parse_report(int key, char *text, struct argp_state *state)
{
    report_arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        state->child_inputs[1] = &a->common.reading;
        return 0;
    case 'o':
        add_output(a, text, state);
        return 0;
    case KEY_ORACLE:
        a->oracle = text;
        return 0;
    case KEY_HISTORY:
        a->history = text;
        return 0;
    case KEY_LAST:
        if (!gmd_parse_u64(text, &a->last) || a->last < 1 || a->last > INT32_MAX) {
            argp_error(state, "--last %s: expected a whole number from 1 to %d", text, INT32_MAX);
        }
        return 0;
    case ARGP_KEY_ARG:
        add_input(a, text, state);
        return 0;
    case ARGP_KEY_END:
        check_arguments(a, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child report_children[] = {
    {&cli_common_argp, 0, NULL, 0}, {&cli_reading_argp, 0, NULL, 0}, {0}};

static const struct argp report_argp = {
    .options = report_options,
    .parser = parse_report,
    .args_doc = "INPUT [KEY=VALUE...] -o FILE...\nINPUT... -o FILE.html\n--history FILE",
    .doc =
        "Runs a .gmd case or a scenario, or replays a PyTorch memory snapshot, and writes what "
        "came of it in the form that FILE's ending names. Makes of a JSON result (--json) what its "
        "run would have written beside it. Writes a case as a program that shows "
        "the defect without gmd. Shows how the figures of stored runs changed."
        "\vWhat is run is what 'gmd run INPUT' runs, of a snapshot 'gmd replay INPUT', with the "
        "same exit status; on the terminal nothing is shown.",
    .children = report_children,
};

/* --- what it does -------------------------------------------------------------------------- */

static gmd_status write_programs(const report_arguments *a, gmd_error *error)
{
    const char *allocator = a->common.has_allocator ? a->common.run.subject.allocator : NULL;
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < a->output_count && status == GMD_OK; i++) {
        if (a->formats[i]->reproduce) {
            status = cli_reproduce(a->input, a->outputs[i], a->formats[i]->reproduce, allocator,
                                   a->oracle, &a->common.reading, error);
        }
    }
    return status;
}

/* The reports that the run would have made, without it. */
static int render_result(const report_arguments *a)
{
    gmd_error error = {""};
    uint8_t *text = NULL;
    size_t size = 0;
    gmd_result_file *result = NULL;
    cli_read read;
    cli_read_begin(&read, &a->common.reading, a->input);
    gmd_status status = gmd_file_read(a->input, &text, &size, &error);
    if (status == GMD_OK) {
        status = gmd_result_file_parse(&result, (const char *)text, size, a->input, &error);
    }
    free(text);
    status = cli_read_end(&read, status, &error);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd report: %s\n", error.text);
        return cli_exit_status(status);
    }
    int exit_status = cli_results_rewrite(gmd_result_file_report(result), &a->common);
    gmd_result_file_free(result);
    return exit_status;
}

static int run_input(report_arguments *a)
{
    cli_results results;
    bool is_replay = is_snapshot(a->input);
    a->common.run.process.is_interrupted = cli_interruption_awaited();
    cli_results_open(&results, &a->common, is_replay ? "replay" : "run");
    results.speaker = "report";
    a->common.quiet = true;
    if (is_replay) {
        cli_replay_input(&a->common, a->input, &results);
    } else {
        cli_run_input(&a->common, a->input, a->params, a->param_count, &results);
    }
    int exit_status = cli_results_report(&results);
    cli_results_free(&results);
    return exit_status;
}

static int write_page(const report_arguments *a)
{
    return cli_page_of_inputs(&a->common,
                              &(cli_page_inputs){.items = a->inputs,
                                                 .count = a->input_count,
                                                 .is_recording = is_snapshot,
                                                 .params = a->params,
                                                 .param_count = a->param_count},
                              a->page_path);
}

static int report(report_arguments *a)
{
    gmd_error error = {""};
    gmd_status status = a->history ? gmd_store_history(a->history, a->last, stdout, &error)
                                   : write_programs(a, &error);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd report: %s\n", error.text);
        return cli_exit_status(status);
    }
    int exit_status = a->page_path ? write_page(a) : CLI_EXIT_OK;
    if (!cli_has_reports(&a->common)) { /* programs, and a page of recordings, need no run */
        return exit_status;
    }
    int of_reports = cli_is_result(a->input) ? render_result(a) : run_input(a);
    return of_reports > exit_status ? of_reports : exit_status;
}

int cli_report(int argc, char **argv)
{
    report_arguments a = {.last = 10};
    cli_options_init(&a.common);
    a.common.runs_nothing = true;
    int status = cli_parse(&report_argp, argc, argv, &a);
    if (status == CLI_EXIT_OK) {
        status = report(&a);
    }
    cli_options_free(&a.common);
    return status;
}
