/* run.c - gmd run SCENARIO|TRACE... [KEY=VALUE...]: scripted workloads and traces, oracles on. */
#include "commands.h"
#include "inputs.h"
#include "results.h"

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

typedef struct run_arguments {
    cli_options common;
    bool lists;
    const char *inputs[INPUT_MAX];
    size_t input_count;
    char *params[PARAM_MAX]; /* KEY=VALUE[,VALUE...] */
    size_t param_count;
} run_arguments;

static const struct argp_option run_options[] = {
    {"list", 'l', NULL, 0, "list the scenarios with their parameters", 1},
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

static bool sink_memory(void *context, gmd_sink_memory *memory)
{
    return gmd_session_memory(context, memory);
}

static gmd_status play_scenario(void *context, gmd_session *session, gmd_error *error)
{
    const scenario_run *run = context;
    gmd_sink sink = {
        .context = session, .request = sink_request, .phase = sink_phase, .memory = sink_memory};
    bool out_of_memory = false;
    gmd_status status = gmd_scenario_run(run->scenario, run->params, run->param_count, run->seed,
                                         &sink, &out_of_memory, error);
    if (status == GMD_OK && out_of_memory) {
        gmd_session_fail(session, "expect",
                         "the job ran out of memory: the last request was refused and the script "
                         "does not handle that");
    }
    return status;
}

/* Picks value number `choice` (mixed radix over all lists) of each parameter; false: no such
 * choice. */
static bool choose_params(char *const *params, size_t count, size_t choice, scenario_run *run,
                          char *variant, size_t variant_size, char *storage, size_t storage_size)
{
    variant[0] = '\0';
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(params[i], '=');
        size_t values = 1;
        for (const char *c = equals; *c; c++) {
            values += *c == ',';
        }
        const char *value = equals + 1;
        for (size_t skip = choice % values; skip; skip--) {
            value = strchr(value, ',') + 1;
        }
        choice /= values;
        int length = (int)strcspn(value, ",");
        int written = snprintf(storage + used, storage_size - used, "%.*s%c%.*s",
                               (int)(equals - params[i]), params[i], '\0', length, value);
        if (written < 0 || (size_t)written >= storage_size - used) {
            return false;
        }
        run->params[i] = (gmd_param){storage + used, storage + used + (equals - params[i]) + 1};
        size_t at = strlen(variant);
        snprintf(variant + at, variant_size - at, "%s%s=%s", i ? " " : "", run->params[i].key,
                 run->params[i].value);
        used += (size_t)written + 1;
    }
    run->param_count = count;
    return choice == 0;
}

static gmd_status run_scenario(const run_arguments *a, const char *name, cli_results *results,
                               gmd_error *error)
{
    char directory[4200];
    snprintf(directory, sizeof directory, "%s/scenarios", a->common.lib_directory);
    scenario_run run = {.seed = a->common.run.seed};
    gmd_status status = gmd_scenario_open(&run.scenario, name, directory, error);
    for (size_t choice = 0; status == GMD_OK && choice < VARIANT_MAX; choice++) {
        char variant[128], storage[4096];
        if (!choose_params(a->params, a->param_count, choice, &run, variant, sizeof variant,
                           storage, sizeof storage)) {
            break;
        }
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
    if (status == GMD_OK) {
        gmd_workload workload = {
            .name = path, .kind = "trace", .trace = &trace, .body = gmd_play_trace};
        status = cli_results_run(results, &options, &workload, error);
    }
    gmd_trace_free(&trace);
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
    gmd_status status = GMD_OK;
    const char *failed = "";
    for (size_t i = 0; i < a.input_count && status == GMD_OK; i++) {
        failed = a.inputs[i];
        status = has_suffix(a.inputs[i], ".gmd") ? run_trace(&a, a.inputs[i], &results, &error)
                                                 : run_scenario(&a, a.inputs[i], &results, &error);
    }
    if (status != GMD_OK) {
        cli_results_add_error(&results, failed, "input", status, &error);
    }
    int exit_status = cli_results_report(&results, &a.common, "run");
    cli_results_free(&results);
    cli_options_free(&a.common);
    return exit_status;
}
