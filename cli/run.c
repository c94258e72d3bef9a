/* run.c - gmd run SCENARIO|TRACE... [KEY=VALUE...]: scripted workloads and traces, oracles on. */
#include "commands.h"
#include "inputs.h"
#include "results.h"
#include "sweep.h"

#include "gmd_file.h"
#include "gmd_scenario.h"
#include "gmd_session.h"
#include "gmd_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX   256
#define PARAM_MAX   32
#define VARIANT_MAX 256 /* combinations of parameter values for one scenario */

enum { KEY_SWEEP = 0x500 };

typedef struct run_arguments {
    cli_options common;
    bool lists;
    cli_sweep sweep;
    const char *inputs[INPUT_MAX];
    size_t input_count;
    char *params[PARAM_MAX]; /* KEY=VALUE[,VALUE...] */
    size_t param_count;
} run_arguments;

static const struct argp_option run_options[] = {
    {"list", 'l', NULL, 0, "list the scenarios with their parameters", 1},
    {"sweep", KEY_SWEEP, "all|memory", OPTION_ARG_OPTIONAL,
     "of a trace: each call that the allocator makes to the device, or each that takes memory, "
     "fails in a run of its own",
     1},
    {0},
};

static error_t parse_run(int key, char *text, struct argp_state *state)
{
    run_arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case 'l':
        a->lists = true;
        return 0;
    case KEY_SWEEP:
        if (!cli_sweep_parse(text, &a->sweep)) {
            argp_error(state, "--sweep=%s: expected all or memory", text);
        }
        return 0;
    case ARGP_KEY_ARG:
        if (strchr(text, '=') && !strchr(text, '/')) {
            if (a->param_count == PARAM_MAX) {
                argp_error(state, "more than %d parameters", PARAM_MAX);
            }
            a->params[a->param_count++] = text;
        } else {
            if (a->input_count == INPUT_MAX) {
                argp_error(state, "more than %d scenarios and traces", INPUT_MAX);
            }
            a->inputs[a->input_count++] = text;
        }
        return 0;
    case ARGP_KEY_END:
        if (!a->input_count && !a->lists) {
            argp_error(state, "expected a scenario or a .gmd trace; --list shows the scenarios");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child run_children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};

static const struct argp run_argp = {
    .options = run_options,
    .parser = parse_run,
    .args_doc = "SCENARIO|TRACE... [KEY=VALUE[,VALUE...]...]",
    .doc =
        "Runs scripted workloads and .gmd traces against an allocator, with the oracles on."
        "\vA scenario is a name ('gmd run --list') or a .lua file. KEY=VALUE sets a parameter of "
        "all scenarios named; several values run each scenario once with each: leak=true,false.",
    .children = run_children,
};

/* --- scenarios --------------------------------------------------------------------------- */

typedef struct scenario_run {
    gmd_scenario *scenario;
    gmd_param params[PARAM_MAX];
    size_t param_count;
    uint64_t seed;
} scenario_run;

static gmd_served sink_request(void *context, const gmd_request *request)
{
    return gmd_session_request(context, request);
}

static void sink_phase(void *context, const char *label)
{
    gmd_session_phase(context, label);
}

static void sink_bound(void *context, const gmd_bound *bound)
{
    gmd_session_bound(context, bound);
}

static bool sink_memory(void *context, gmd_sink_memory *memory)
{
    return gmd_session_memory(context, memory);
}

static gmd_status play_scenario(void *context, gmd_session *session, gmd_error *error)
{
    const scenario_run *run = context;
    gmd_sink sink = {.context = session,
                     .request = sink_request,
                     .phase = sink_phase,
                     .memory = sink_memory,
                     .bound = sink_bound};
    bool out_of_memory = false;
    gmd_status status = gmd_scenario_run(run->scenario, run->params, run->param_count, run->seed,
                                         &sink, &out_of_memory, error);
    if (status == GMD_OK && out_of_memory) {
        gmd_session_fail(
            session, "expect", gmd_session_last_refused(session),
            "the job ran out of memory: this allocation was refused and the script does "
            "not handle that");
    }
    return status;
}

/* The values of KEY=VALUE[,VALUE...], and what separates them made into terminators. */
typedef struct value_list {
    const char *key;
    const char *values[VARIANT_MAX];
    size_t count;
} value_list;

/* Takes `text` apart in place. */
static gmd_status split_values(char *text, value_list *list, gmd_error *error)
{
    char *equals = strchr(text, '=');
    *equals = '\0';
    list->key = text;
    list->count = 0;
    for (char *value = equals + 1; value;) {
        char *comma = strchr(value, ',');
        if (comma) {
            *comma++ = '\0';
        }
        if (!*value || list->count == VARIANT_MAX) {
            return gmd_fail(
                error, GMD_BAD_INPUT,
                "parameter '%.80s': expected KEY=VALUE[,VALUE...] with 1 to %d values, none "
                "of them empty",
                text, VARIANT_MAX);
        }
        list->values[list->count++] = value;
        value = comma;
    }
    return GMD_OK;
}

static gmd_status split_all(const run_arguments *a, value_list *lists, size_t *combinations,
                            gmd_error *error)
{
    *combinations = 1;
    for (size_t i = 0; i < a->param_count; i++) {
        gmd_status status = split_values(a->params[i], &lists[i], error);
        if (status != GMD_OK) {
            return status;
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(lists[k].key, lists[i].key) == 0) {
                return gmd_fail(error, GMD_BAD_INPUT, "parameter '%.80s' is given twice",
                                lists[i].key);
            }
        }
        *combinations *= lists[i].count;
        if (*combinations > VARIANT_MAX) {
            return gmd_fail(error, GMD_BAD_INPUT,
                            "the parameters' values make more than %d combinations", VARIANT_MAX);
        }
    }
    return GMD_OK;
}

/* Combination number `choice`, in mixed radix over all lists. */
static void choose_params(const value_list *lists, size_t count, size_t choice, scenario_run *run,
                          char *variant, size_t variant_size)
{
    variant[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t values = lists[i].count ? lists[i].count : 1; /* never 0: split_values sees to it */
        run->params[i] = (gmd_param){lists[i].key, lists[i].values[choice % values]};
        choice /= values;
        size_t at = strlen(variant);
        snprintf(variant + at, variant_size - at, "%s%s=%s", i ? " " : "", run->params[i].key,
                 run->params[i].value);
    }
    run->param_count = count;
}

static gmd_status run_scenario(const run_arguments *a, const char *name, const value_list *lists,
                               size_t combinations, cli_results *results, gmd_error *error)
{
    char directory[4200], variant[128];
    snprintf(directory, sizeof directory, "%s/scenarios", a->common.lib_directory);
    scenario_run run = {.seed = a->common.run.seed};
    if (a->common.run.interleave) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "a scenario has one thread: --interleave needs a trace with more");
    }
    if (a->sweep) {
        return gmd_fail(error, GMD_BAD_INPUT, "--sweep needs a .gmd trace, and %s is a scenario",
                        name);
    }
    gmd_status status = gmd_scenario_open(&run.scenario, name, directory, error);
    for (size_t choice = 0; status == GMD_OK && choice < combinations; choice++) {
        choose_params(lists, a->param_count, choice, &run, variant, sizeof variant);
        gmd_workload workload = {.name = gmd_scenario_name(run.scenario),
                                 .kind = "scenario",
                                 .variant = variant,
                                 .body = play_scenario,
                                 .context = &run};
        status = cli_results_run(results, &a->common.run, &workload, error);
    }
    gmd_scenario_close(run.scenario);
    return status;
}

static void print_scenario(void *context, const char *name)
{
    const char *directory = context;
    gmd_scenario *scenario = NULL;
    gmd_error error;
    if (gmd_scenario_open(&scenario, name, directory, &error) != GMD_OK) {
        printf("%-24s (cannot be loaded: %s)\n", name, error.text);
        return;
    }
    printf("%-24s %s\n", name, gmd_scenario_summary(scenario));
    gmd_scenario_param param;
    for (size_t i = 0; gmd_scenario_param_at(scenario, i, &param); i++) {
        printf("    %s=%s%*s %s\n", param.key, param.default_value,
               (int)(strlen(param.key) + strlen(param.default_value) < 22
                         ? 22 - strlen(param.key) - strlen(param.default_value)
                         : 0),
               "", param.help);
    }
    gmd_scenario_close(scenario);
}

static int list_scenarios(const cli_options *options)
{
    char directory[4200];
    gmd_error error;
    snprintf(directory, sizeof directory, "%s/scenarios", options->lib_directory);
    gmd_status status = gmd_scenario_each(directory, print_scenario, directory, &error);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd: %s\n", error.text);
    }
    return cli_exit_status(status);
}

/* --- traces ------------------------------------------------------------------------------ */

static bool has_suffix(const char *text, const char *suffix)
{
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

static gmd_status run_trace(const run_arguments *a, const char *path, cli_results *results,
                            gmd_error *error)
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
        gmd_workload workload = {
            .name = path, .kind = "trace", .trace = &trace, .body = gmd_play_trace};
        status = cli_results_run(results, &options, &workload, error);
    }
    gmd_trace_free(&trace);
    return status;
}

/* Before anything runs: a name that is wrong is told at once. */
static gmd_status check_inputs(const run_arguments *a, const char **failed, gmd_error *error)
{
    char directory[4200];
    snprintf(directory, sizeof directory, "%s/scenarios", a->common.lib_directory);
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < a->input_count && status == GMD_OK; i++) {
        *failed = a->inputs[i];
        if (!has_suffix(a->inputs[i], ".gmd")) {
            gmd_scenario *scenario = NULL;
            status = gmd_scenario_open(&scenario, a->inputs[i], directory, error);
            gmd_scenario_close(scenario);
        }
    }
    return status;
}

static gmd_status run_all(run_arguments *a, cli_results *results, const char **failed,
                          gmd_error *error)
{
    static const char *const parameters = "parameters";
    size_t combinations;
    value_list *lists = calloc(PARAM_MAX, sizeof *lists);
    if (!lists) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the parameters");
    }
    gmd_status status = check_inputs(a, failed, error);
    if (status == GMD_OK) {
        *failed = parameters;
        status = split_all(a, lists, &combinations, error);
    }
    for (size_t i = 0; i < a->input_count && status == GMD_OK; i++) {
        *failed = a->inputs[i];
        status = has_suffix(a->inputs[i], ".gmd")
                     ? run_trace(a, a->inputs[i], results, error)
                     : run_scenario(a, a->inputs[i], lists, combinations, results, error);
    }
    free(lists);
    return status;
}

int cli_run(int argc, char **argv)
{
    run_arguments a = {0};
    cli_options_init(&a.common);
    int usage = cli_parse(&run_argp, argc, argv, &a);
    if (usage != GMD_EXIT_OK) {
        return usage;
    }
    if (a.lists) {
        int listed = list_scenarios(&a.common);
        cli_options_free(&a.common);
        return listed;
    }
    cli_results results = {0};
    gmd_error error = {""};
    const char *failed = "";
    gmd_status status = run_all(&a, &results, &failed, &error);
    if (status != GMD_OK) {
        cli_results_add_error(&results, failed, "input", status, &error);
    }
    int exit_status = cli_results_report(&results, &a.common, "run");
    cli_results_free(&results);
    cli_options_free(&a.common);
    return exit_status;
}
