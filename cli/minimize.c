/* minimize.c - gmd minimize CASE: the smallest sequence with the same verdict. */
#include "commands.h"
#include "inputs.h"
#include "interruption.h"
#include "options.h"
#include "writable.h"

#include "gmd_clock.h"
#include "gmd_findings.h"
#include "gmd_known.h"
#include "gmd_size.h"
#include "gmd_status_line.h"
#include "gmd_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_ORACLE = 0x400, KEY_TIME };

typedef struct minimize_arguments {
    cli_options common;
    const char *input, *output, *oracle;
    uint64_t seconds;
} minimize_arguments;

static const struct argp_option minimize_options[] = {
    {"output", 'o', "FILE", 0, "where to (CASE with .min.gmd at its end; -: standard output)", 1},
    {"oracle", KEY_ORACLE, "NAME", 0,
     "which verdict is kept, where the case has several (the "
     "first)",
     1},
    {"time", KEY_TIME, "SECONDS", 0, "stop after so long with the smallest so far (600)", 1},
    {0},
};

/* Where the result goes: by default beside the case. */
static const char *output_of(const minimize_arguments *a, char *path, size_t size)
{
    if (a->output) {
        return a->output;
    }
    size_t stem = strlen(a->input);
    stem -= stem > 4 && strcmp(a->input + stem - 4, ".gmd") == 0 ? 4 : 0;
    snprintf(path, size, "%.*s.min.gmd", (int)stem, a->input);
    return path;
}

static void need_oracle(struct argp_state *state, const char *name)
{
    char names[600];
    if (!gmd_oracle_is_named(name)) {
        gmd_oracle_names(names, sizeof names);
        argp_error(state, "--oracle %s: there is no such oracle; there are %s", name, names);
    }
}

static void check_arguments(struct argp_state *state, const minimize_arguments *a)
{
    char path[4200];
    gmd_error error = {""};
    if (!a->input) {
        argp_error(state, "expected a .gmd case");
        return;
    }
    const char *output = output_of(a, path, sizeof path);
    if (cli_probe_file(output, &error) != GMD_OK) {
        argp_error(state, "%s", error.text);
    }
    if (strcmp(output, "-") != 0 && cli_is_same_file(output, a->input)) {
        argp_error(state, "-o %s: is the same file as the case", output);
    }
}

static error_t parse_minimize(int key, char *text, struct argp_state *state)
{
    minimize_arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        state->child_inputs[1] = &a->common.reading;
        return 0;
    case 'o':
        a->output = text;
        return 0;
    case KEY_ORACLE:
        need_oracle(state, text);
        a->oracle = text;
        return 0;
    case KEY_TIME:
        if (!gmd_parse_u64(text, &a->seconds) || !a->seconds) {
            argp_error(state, "--time %s: expected a number of seconds from 1", text);
        }
        return 0;
    case ARGP_KEY_ARG:
        if (a->input) {
            argp_error(state, "expected one case, found '%s' as well", text);
        }
        cli_refuse_result(state, text);
        a->input = text;
        return 0;
    case ARGP_KEY_END:
        check_arguments(state, a);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child minimize_children[] = {
    {&cli_basic_argp, 0, NULL, 0}, {&cli_reading_argp, 0, NULL, 0}, {0}};

static const struct argp minimize_argp = {
    .options = minimize_options,
    .parser = parse_minimize,
    .args_doc = "CASE",
    .doc =
        "Makes a .gmd case as small and as simple as it can be with the same verdict: the same "
        "kind with the same parties."
        "\vExit status 0: done; 2: the case shows no defect; 3: interrupted, with the smallest so "
        "far, or gmd failed.",
    .children = minimize_children,
};

typedef struct progress {
    gmd_status_line line;
    double start; /* on gmd_clock_s */
} progress;

static void show_progress(void *context, size_t requests, uint64_t tries)
{
    progress *p = context;
    gmd_status_show(&p->line, gmd_clock_s() - p->start, "%zu requests after %" PRIu64 " tries",
                    requests, tries);
}

static const gmd_violation *chosen_violation(const minimize_arguments *a, const gmd_outcome *o)
{
    uint32_t i = 0;
    while (i < o->violation_count && a->oracle && strcmp(a->oracle, o->violations[i].oracle) != 0) {
        i++;
    }
    return i < o->violation_count ? &o->violations[i] : NULL;
}

/* The verdict that is to be kept: as `gmd run` finds it, of second runs, too. */
static gmd_status find_cause(const minimize_arguments *a, gmd_runner *runner,
                             const gmd_trace *trace, gmd_identity *cause, gmd_error *error)
{
    const gmd_outcome *o;
    const gmd_violation *found = NULL;
    gmd_status status = GMD_OK;
    for (int is_isolated = 0; status == GMD_OK && !found && is_isolated < 2; is_isolated++) {
        status = gmd_runner_isolate(runner, is_isolated, error);
        status = status == GMD_OK ? gmd_runner_run(runner, trace, &o, error) : status;
        found = status == GMD_OK ? chosen_violation(a, o) : NULL;
    }
    if (status != GMD_OK) {
        return status;
    }
    if (found) {
        *cause = found->identity;
        return gmd_runner_isolate(runner, false, error);
    }
    if (o->verdict == GMD_ERROR) {
        return gmd_fail(error, o->error_status, "%s", o->error);
    }
    return gmd_fail(error, GMD_BAD_INPUT, "%s: shows no defect%s%s on the allocator %s%s", a->input,
                    a->oracle ? " that the oracle names: " : "", a->oracle ? a->oracle : "",
                    a->common.run.subject.allocator,
                    strcmp(a->common.run.subject.allocator, "reference") == 0
                        ? "; --allocator names the one that it is of"
                        : "");
}

static gmd_status write_result(const minimize_arguments *a, const gmd_trace *trace,
                               const gmd_minimized *result, gmd_error *error)
{
    char path[4200], origin[4300];
    snprintf(origin, sizeof origin, "minimised from %s", gmd_file_name(a->input));
    const char *output = output_of(a, path, sizeof path);
    bool is_stdout = strcmp(output, "-") == 0;
    bool is_interrupted = !result->is_complete && gmd_options_interrupted(&a->common.run);
    gmd_status status =
        is_stdout ? gmd_case_file_write(trace, &result->violation, origin,
                                        a->common.run.subject.allocator, "-", error)
                  : gmd_case_file_write_all(trace, &result->violation, origin,
                                            a->common.run.subject.allocator, output, error);
    if (!a->common.quiet) {
        const char *early = is_interrupted ? " (interrupted)" : " (the time was up)";
        fprintf(is_stdout ? stderr : stdout,
                "%s: %zu request%s after %" PRIu64 " tries%s\n  %s: %s\n",
                status == GMD_OK ? output : "not written", trace->count,
                trace->count == 1 ? "" : "s", result->tries, result->is_complete ? "" : early,
                result->violation.oracle, result->violation.message);
    }
    return status != GMD_OK ? status
           : is_interrupted ? gmd_fail(error, GMD_INTERRUPTED,
                                       "interrupted: the smallest case so far was written")
                            : GMD_OK;
}

static gmd_status minimize(minimize_arguments *a, gmd_error *error)
{
    gmd_trace trace = {0};
    gmd_run_options options = a->common.run;
    gmd_runner runner;
    gmd_identity cause;
    gmd_minimized result;
    progress shown = {.start = gmd_clock_s()};
    gmd_minimize_limits limits = {.seconds = a->seconds ? (double)a->seconds : 600,
                                  .progress = options.process.shows_progress ? show_progress : NULL,
                                  .context = &shown};
    gmd_status status = cli_read_trace(&trace, a->input, &a->common, &options, error);
    if (status == GMD_OK) {
        status = gmd_trace_absorb_options(&trace, &options, error);
    }
    gmd_options_leave_to_traces(&options);
    gmd_runner_init(&runner, &options);
    if (status == GMD_OK) {
        status = find_cause(a, &runner, &trace, &cause, error);
    }
    if (status == GMD_OK) {
        status = gmd_minimize(&trace, &runner, &cause, &limits, &result, error);
    }
    gmd_status_clear(&shown.line);
    if (status == GMD_OK) {
        status = write_result(a, &trace, &result, error);
    }
    gmd_runner_close(&runner);
    gmd_trace_free(&trace);
    return status;
}

int cli_minimize(int argc, char **argv)
{
    minimize_arguments a = {0};
    cli_options_init(&a.common);
    int usage = cli_parse(&minimize_argp, argc, argv, &a);
    if (usage != CLI_EXIT_OK) {
        return usage;
    }
    gmd_error error = {""};
    a.common.run.process.is_interrupted = cli_interruption_awaited();
    gmd_status status = minimize(&a, &error);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd minimize: %s\n", error.text);
    }
    cli_options_free(&a.common);
    return cli_exit_status(status);
}
