/* run.c - gmd run SCENARIO|TRACE... [KEY=VALUE...]: scripted workloads and traces, oracles on. */
#include "commands.h"
#include "inputs.h"
#include "interruption.h"
#include "listing.h"
#include "play.h"
#include "play_inputs.h"
#include "selection.h"
#include "sweep.h"
#include "unrecorded.h"
#include "values.h"
#include "writable.h"

#include "gmd_file.h"
#include "gmd_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX 256

enum {
    KEY_SWEEP = 0x500,
    KEY_REPEAT,
    KEY_SMALLEST,
    KEY_PLACEMENT,
    KEY_LIST_ORACLES,
    KEY_LINES,
    KEY_TENSORS,
    KEY_RETENTION,
    KEY_TIMELINE,
    KEY_INSPECT,
    KEY_AT,
    KEY_WORKSPACES,
    KEY_UNRECORDED
};

typedef struct run_arguments {
    cli_options common;
    bool lists, lists_oracles, finds_smallest_limit;
    cli_sweep sweep;
    uint64_t repeat, placement_seeds;
    uint32_t inspect; /* GMD_INSPECT_... */
    const char *at;
    const char *workspaces_path, *unrecorded_path;
    const char *inputs[INPUT_MAX];
    size_t input_count;
    char *params[CLI_PARAM_MAX]; /* KEY=VALUE[,VALUE...] */
    size_t param_count;
} run_arguments;

static const struct argp_option run_options[] = {
    {"list", 'l', NULL, 0, "list the scenarios, or the parameters of those named", 1},
    {"list-oracles", KEY_LIST_ORACLES, NULL, 0,
     "list the oracles and the kinds of their verdicts, for --known", 1},
    {"repeat", KEY_REPEAT, "N", 0,
     "run each N times, with the seeds from --seed on, and show least, median and most of its "
     "figures",
     1},
    {"placement", KEY_PLACEMENT, "SPEC", 0,
     "the order of addresses in which the simulated device hands out memory: rising (default) or "
     "'seed N'; 'seeds N' runs each with rising ones and with N orders, of the seeds from --seed "
     "on, and shows the range of its figures",
     1},
    {"smallest-limit", KEY_SMALLEST, NULL, 0,
     "bisect --limit for the smallest that a scenario runs in", 1},
    {"sweep", KEY_SWEEP, "all|memory", OPTION_ARG_OPTIONAL,
     "run a trace once for each call that the allocator makes to the device, or each that takes "
     "memory: that call fails",
     1},
    {"workspaces", KEY_WORKSPACES, "FILE", 0,
     "take the workspaces of cuDNN from this table, recorded on your GPU (docs/workspaces.md)", 1},
    {"unrecorded", KEY_UNRECORDED, "FILE", 0,
     "write the calls of cuDNN that no table has, for record_workspaces.py --shapes", 1},
    {NULL, 0, NULL, 0, "Inside a scenario:", 2},
    {"lines", KEY_LINES, NULL, 0, "memory by line of the script", 2},
    {"tensors", KEY_TENSORS, NULL, 0, "the tensors that are alive, and what the rest is", 2},
    {"retention", KEY_RETENTION, NULL, 0, "who holds what is alive: the shortest path to it", 2},
    {"timeline", KEY_TIMELINE, NULL, 0, "memory by category at each phase", 2},
    {"inspect", KEY_INSPECT, NULL, 0, "all four", 2},
    {"at", KEY_AT, "PHASE", 0, "tensors and retention at the end of this phase, not of the script",
     2},
    {0},
};

static bool parse_inspect(int key, uint32_t *inspect)
{
    switch (key) {
    case KEY_LINES:
        *inspect |= GMD_INSPECT_LINES;
        return true;
    case KEY_TENSORS:
        *inspect |= GMD_INSPECT_TENSORS;
        return true;
    case KEY_RETENTION:
        *inspect |= GMD_INSPECT_RETENTION;
        return true;
    case KEY_TIMELINE:
        *inspect |= GMD_INSPECT_TIMELINE;
        return true;
    case KEY_INSPECT:
        *inspect |= GMD_INSPECT_ALL;
        return true;
    default:
        return false;
    }
}

static void add_param(run_arguments *a, char *text, struct argp_state *state)
{
    if (a->param_count == CLI_PARAM_MAX) {
        argp_error(state, "more than %d parameters", CLI_PARAM_MAX);
    }
    a->params[a->param_count++] = text;
}

static void add_input(run_arguments *a, const char *text, struct argp_state *state)
{
    if (a->input_count == INPUT_MAX) {
        argp_error(state, "more than %d scenarios and traces", INPUT_MAX);
    }
    cli_refuse_result(state, text);
    a->inputs[a->input_count++] = text;
}

/* A bare name is gmd's own scenario, and no file of the user's. */
static void refuse_overwriting(const run_arguments *a, struct argp_state *state)
{
    for (size_t i = 0; i < a->input_count; i++) {
        const char *ending = strrchr(a->inputs[i], '.');
        if (ending && (strcmp(ending, ".gmd") == 0 || strcmp(ending, ".lua") == 0)) {
            cli_refuse_overwriting(state, &a->common, a->inputs[i]);
        }
    }
}

/* "seeds N", or what the header line of a trace says. */
static void need_placement(struct argp_state *state, const char *text, run_arguments *a)
{
    static const char seeds[] = "seeds ";
    gmd_error error = {""};
    gmd_placement *placement = &a->common.run.conditions.placement;
    a->placement_seeds = 0;
    if (strncmp(text, seeds, strlen(seeds)) == 0) {
        *placement = (gmd_placement){.kind = GMD_PLACEMENT_RISING};
        cli_need_number(state, "--placement seeds", text + strlen(seeds), 1, CLI_REPEAT_MAX,
                        &a->placement_seeds);
    } else if (gmd_placement_parse(placement, text, strlen(text), &error) != GMD_OK) {
        argp_error(state, "--placement: %s (or 'seeds N', to see the range of N of them)",
                   error.text);
    }
    a->common.placement_text = text;
}

/* What would be made of one run cannot be made of many. */
static void check_placement(const run_arguments *a, struct argp_state *state)
{
    if (a->common.placement_text && a->common.run.device.kind == GMD_DEVICE_CUDA) {
        argp_error(state,
                   "--placement is of the simulated device: a real one places memory itself");
    }
    if (!a->placement_seeds) {
        return;
    }
    if (a->sweep || a->repeat > 1 || a->inspect || a->finds_smallest_limit) {
        argp_error(state, "--placement 'seeds N' goes with neither --sweep nor --repeat nor "
                          "--inspect nor --smallest-limit; 'seed N' does");
    }
    if (a->common.snapshot_path) {
        argp_error(state, "--snapshot holds one run, and --placement 'seeds N' makes more");
    }
}

static void check_unrecorded(const run_arguments *a, struct argp_state *state)
{
    const char *path = a->unrecorded_path;
    if (path && strcmp(path, "-") == 0) {
        if (cli_stdout_reports(&a->common)) {
            argp_error(state, "only one report can go to standard output");
        }
    } else if (path) {
        cli_need_writable(state, "--unrecorded", path, NULL, 0);
        cli_refuse_overwriting(state, &a->common, path);
        if (a->workspaces_path && cli_is_same_file(path, a->workspaces_path)) {
            argp_error(state, "--unrecorded %s: is the same file as --workspaces", path);
        }
    }
}

static void check_arguments(const run_arguments *a, struct argp_state *state)
{
    check_placement(a, state);
    refuse_overwriting(a, state);
    if (a->workspaces_path) {
        cli_refuse_overwriting(state, &a->common, a->workspaces_path);
    }
    check_unrecorded(a, state);
    if (!a->input_count && !a->lists && !a->lists_oracles) {
        argp_error(state, "expected a scenario or a .gmd trace; --list shows the scenarios");
    }
    if (a->sweep && a->repeat > 1) {
        argp_error(state, "--sweep and --repeat cannot be combined");
    }
    if (a->sweep) {
        cli_refuse_views(state, &a->common);
    }
    if (a->common.snapshot_path && (a->repeat > 1 || a->finds_smallest_limit)) {
        argp_error(state, "--snapshot holds one run, and --%s makes more",
                   a->repeat > 1 ? "repeat" : "smallest-limit");
    }
    if (a->inspect && a->repeat > 1) {
        argp_error(state, "--repeat shows statistics of many runs; to look inside, run one");
    }
    if (a->inspect && a->sweep) {
        argp_error(state, "--sweep is for traces, and looking inside for scenarios");
    }
    if (a->at && !(a->inspect & (GMD_INSPECT_TENSORS | GMD_INSPECT_RETENTION))) {
        argp_error(state, "--at %s: expected --tensors or --retention with it", a->at);
    }
    if (a->finds_smallest_limit && (a->sweep || a->repeat > 1 || a->inspect)) {
        argp_error(state, "--smallest-limit goes with neither --sweep nor --repeat nor --inspect");
    }
}

static error_t parse_run(int key, char *text, struct argp_state *state)
{
    run_arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        state->child_inputs[1] = &a->common.reading;
        return 0;
    case KEY_LIST_ORACLES:
        a->lists_oracles = true;
        return 0;
    case 'l':
        a->lists = true;
        return 0;
    case KEY_SWEEP:
        if (!cli_sweep_parse(text, &a->sweep)) {
            argp_error(state, "--sweep=%s: expected all or memory", text);
        }
        return 0;
    case KEY_SMALLEST:
        a->finds_smallest_limit = true;
        return 0;
    case KEY_PLACEMENT:
        need_placement(state, text, a);
        return 0;
    case KEY_REPEAT:
        if (!gmd_parse_u64(text, &a->repeat) || a->repeat < 1 || a->repeat > CLI_REPEAT_MAX) {
            argp_error(state, "--repeat %s: expected a whole number from 1 to %d", text,
                       CLI_REPEAT_MAX);
        }
        return 0;
    case ARGP_KEY_ARG:
        if (cli_is_parameter(text)) {
            add_param(a, text, state);
        } else {
            add_input(a, text, state);
        }
        return 0;
    case ARGP_KEY_END:
        check_arguments(a, state);
        return 0;
    case KEY_AT:
        a->at = text;
        return 0;
    case KEY_WORKSPACES:
        a->workspaces_path = text;
        return 0;
    case KEY_UNRECORDED:
        a->unrecorded_path = text;
        return 0;
    default:
        return parse_inspect(key, &a->inspect) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child run_children[] = {
    {&cli_common_argp, 0, NULL, 0}, {&cli_reading_argp, 0, NULL, 0}, {0}};

static const struct argp run_argp = {
    .options = run_options,
    .parser = parse_run,
    .args_doc = "SCENARIO|TRACE... [KEY=VALUE[,VALUE...]...]",
    .doc = "Runs scripted workloads and .gmd traces against an allocator, with the oracles on."
           "\vA scenario is a name ('gmd run --list') or a .lua file; 'all' stands for every name, "
           "'tag:TAG' for those with the tag. KEY=VALUE sets a parameter of all scenarios named, "
           "and of "
           "those of 'all' and tags that have it; several values run each scenario once with each: "
           "leak=true,false.",
    .children = run_children,
};

/* --- traces ------------------------------------------------------------------------------ */

static gmd_status run_trace(const run_arguments *a, const cli_plan *plan, const char *path,
                            cli_results *results, gmd_error *error)
{
    if (a->param_count) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: a trace has no parameter '%s'", path,
                        a->params[0]);
    }
    gmd_trace trace = {0};
    gmd_run_options options = a->common.run;
    gmd_status status = cli_read_trace(&trace, path, &a->common, &options, error);
    if (status == GMD_OK && a->sweep) {
        status = cli_sweep_run(results, &options, "run", path, &trace, a->sweep, error);
    } else if (status == GMD_OK) {
        status = cli_play_trace(plan, path, &options, &trace, results, error);
    }
    gmd_trace_free(&trace);
    return status;
}

/* --- all of it --------------------------------------------------------------------------- */

static gmd_status run_selected(const run_arguments *a, const cli_plan *plan,
                               const cli_selected *selected, cli_results *results, gmd_error *error)
{
    if (selected->is_trace && a->finds_smallest_limit) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--smallest-limit needs a scenario, and %s is a trace", selected->name);
    }
    if (selected->is_trace && (a->workspaces_path || a->unrecorded_path)) {
        return gmd_fail(error, GMD_BAD_INPUT, "--%s is for scenarios, and %s is a trace",
                        a->workspaces_path ? "workspaces" : "unrecorded", selected->name);
    }
    if (selected->is_trace) {
        return run_trace(a, plan, selected->name, results, error);
    }
    if (a->sweep) {
        return gmd_fail(error, GMD_BAD_INPUT, "--sweep needs a .gmd trace, and %s is a scenario",
                        selected->name);
    }
    return cli_play_scenario(plan, selected->name, selected->is_of_group, results, error);
}

/* An interrupted command leaves some out. */
static void note_left_out(cli_results *results, size_t count)
{
    gmd_outcome *last = results->count ? results->items[results->count - 1] : NULL;
    if (last && count && last->note_count < GMD_NOTE_MAX) {
        snprintf(last->notes[last->note_count++], sizeof last->notes[0],
                 "%zu more scenarios or traces were not run", count);
    }
}

/* Also what an interrupted command found so far. */
static gmd_status write_unrecorded(FILE *calls, const char *path, gmd_status status,
                                   const char **failed, gmd_error *error)
{
    gmd_error own = {""};
    gmd_status written = cli_unrecorded_write(calls, path, &own);
    if (status == GMD_OK && written != GMD_OK) {
        *failed = path;
        *error = own;
        return written;
    }
    return status;
}

static gmd_status run_all(run_arguments *a, cli_selection *selection, const char *directory,
                          cli_results *results, const char **failed, gmd_error *error)
{
    cli_variants *variants = calloc(1, sizeof *variants);
    if (!variants) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the parameters");
    }
    gmd_workspaces *workspaces = NULL;
    FILE *unrecorded = NULL;
    gmd_status status = cli_select(selection, a->inputs, a->input_count, directory, failed, error);
    if (status == GMD_OK && a->workspaces_path) {
        *failed = a->workspaces_path;
        status = gmd_workspaces_read(&workspaces, a->workspaces_path, error);
    }
    if (status == GMD_OK && a->unrecorded_path) {
        *failed = a->unrecorded_path;
        unrecorded = cli_unrecorded_open(error);
        status = unrecorded ? GMD_OK : GMD_FAILED;
    }
    if (status == GMD_OK) {
        *failed = "parameters";
        status = cli_variants_parse(variants, a->params, a->param_count, error);
    }
    if (status == GMD_OK) {
        status = cli_selection_check(selection, variants, directory, error);
    }
    cli_plan plan = {.options = &a->common,
                     .directory = directory,
                     .variants = variants,
                     .repeat = a->repeat,
                     .placement_seeds = a->placement_seeds,
                     .inspect = a->inspect,
                     .at = a->at,
                     .workspaces = workspaces,
                     .unrecorded = unrecorded,
                     .finds_smallest_limit = a->finds_smallest_limit};
    const char **names = status == GMD_OK ? calloc(selection->count + 1, sizeof *names) : NULL;
    for (size_t i = 0; names && i < selection->count; i++) {
        names[i] = selection->items[i].name;
    }
    if (!results->inputs) { /* else the command has others beside these */
        results->inputs = names;
        results->input_count = names ? selection->count : 0;
    }
    results->hides_passes = a->repeat > 1 || a->placement_seeds;
    for (size_t i = 0; i < selection->count && status == GMD_OK; i++) {
        *failed = selection->items[i].name;
        status = run_selected(a, &plan, &selection->items[i], results, error);
        if (status == GMD_INTERRUPTED) {
            note_left_out(results, selection->count - i - 1);
        }
    }
    if (results->inputs == names) {
        results->inputs = NULL;
        results->input_count = 0;
    }
    free(names);
    free(variants);
    gmd_workspaces_close(workspaces);
    return unrecorded ? write_unrecorded(unrecorded, a->unrecorded_path, status, failed, error)
                      : status;
}

static int list(const run_arguments *a, const char *directory)
{
    gmd_error error;
    cli_selection selection = {0};
    const char *failed = "";
    gmd_status status =
        cli_select(&selection, a->inputs, a->input_count, directory, &failed, &error);
    if (status == GMD_OK && a->input_count == 0) {
        status = cli_list_all(directory, &error);
    }
    for (size_t i = 0; i < selection.count && status == GMD_OK; i++) {
        status = selection.items[i].is_trace
                     ? gmd_fail(&error, GMD_BAD_INPUT, "%s is a trace: --list is for scenarios",
                                selection.items[i].name)
                     : cli_list_one(selection.items[i].name, directory, &error);
    }
    cli_selection_free(&selection);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd run: %s\n", error.text);
    }
    return cli_exit_status(status);
}

static void scenario_directory(const cli_options *options, char *path, size_t size)
{
    snprintf(path, size, "%s/scenarios", options->lib_directory);
}

/* What fails before a run is an outcome of its own. */
static void run_or_tell(run_arguments *a, const char *directory, cli_results *results)
{
    cli_selection selection = {0};
    gmd_error error = {""};
    const char *failed = "";
    gmd_status status = run_all(a, &selection, directory, results, &failed, &error);
    cli_results_end(results, failed, status, &error);
    cli_selection_free(&selection);
}

static int run(run_arguments *a, const char *directory)
{
    cli_results results;
    a->common.run.process.is_interrupted = cli_interruption_awaited();
    cli_results_open(&results, &a->common, "run");
    run_or_tell(a, directory, &results);
    int exit_status = cli_results_report(&results);
    cli_results_free(&results);
    return exit_status;
}

void cli_run_input(const cli_options *options, const char *input, char *const *params,
                   size_t param_count, cli_results *results)
{
    char directory[4200];
    run_arguments a = {.common = *options,
                       .repeat = 1,
                       .inputs = {input},
                       .input_count = 1,
                       .param_count = param_count};
    memcpy(a.params, params, param_count * sizeof *params);
    scenario_directory(options, directory, sizeof directory);
    run_or_tell(&a, directory, results);
}

int cli_run(int argc, char **argv)
{
    char directory[4200];
    run_arguments a = {.repeat = 1};
    cli_options_init(&a.common);
    int status = cli_parse(&run_argp, argc, argv, &a);
    if (status == CLI_EXIT_OK) {
        scenario_directory(&a.common, directory, sizeof directory);
        if (a.lists_oracles) {
            cli_list_oracles();
        } else {
            status = a.lists ? list(&a, directory) : run(&a, directory);
        }
    }
    cli_options_free(&a.common);
    return status;
}
