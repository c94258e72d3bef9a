/* bench.c - gmd bench: speed, side by side. */
#include "commands.h"
#include "options.h"
#include "probe.h"
#include "version.h"

#include "gmd_bench.h"
#include "gmd_output.h"
#include "gmd_subject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_VERSUS = 0x500, KEY_FILTER, KEY_SECONDS, KEY_RESULT };

#define SECONDS_MAX 3600.0

typedef struct bench_arguments {
    cli_options common;
    const char *versus[GMD_BENCH_ALLOCATOR_MAX - 1], *filter;
    uint32_t versus_count;
    double seconds;
} bench_arguments;

static const struct argp_option bench_options[] = {
    {"versus", KEY_VERSUS, "SPEC", 0,
     "another allocator, measured in turns with --allocator; up to four times", 1},
    {"filter", KEY_FILTER, "TEXT", 0, "only the benchmarks with this in their names", 1},
    {"seconds", KEY_SECONDS, "S", 0, "how long each benchmark of an allocator is measured (0.5)",
     1},
    {"json", KEY_RESULT, "FILE", 0, "write the result as JSON; -: to standard output, alone", 1},
    {0},
};

static void need_seconds(struct argp_state *state, const char *text, double *seconds)
{
    char *end;
    errno = 0;
    *seconds = strtod(text, &end);
    if (end == text || *end || errno || !(*seconds > 0) || *seconds > SECONDS_MAX) {
        argp_error(state, "--seconds %s: expected a number of seconds, up to %.0f", text,
                   SECONDS_MAX);
    }
}

static void need_filter(struct argp_state *state, const char *text)
{
    char names[600];
    if (!gmd_bench_is_known(text, names, sizeof names)) {
        argp_error(state, "--filter %s: no benchmark has that in its name; there are %s", text,
                   names);
    }
}

static void add_versus(struct argp_state *state, bench_arguments *a, const char *spec)
{
    if (a->versus_count == GMD_BENCH_ALLOCATOR_MAX - 1) {
        argp_error(state, "--versus %s: there are %d already", spec, GMD_BENCH_ALLOCATOR_MAX - 1);
    }
    a->versus[a->versus_count++] = spec;
    a->common.needs_torch = a->common.needs_torch || strcmp(spec, "torch") == 0;
}

/* Options that other commands have and that would be without effect here. */
static void refuse_options(struct argp_state *state, const cli_options *o)
{
    const struct {
        bool is_given;
        const char *name;
    } options[] = {{o->run.conditions.limit_bytes > 0, "--limit"},
                   {o->known.count > 0, "--known"},
                   {gmd_schedule_is_stated(&o->run.conditions.schedule), "--schedule"},
                   {gmd_schedule_is_stated(&o->run.conditions.interleave), "--interleave"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (options[i].is_given) {
            argp_error(state, "gmd bench takes no %s", options[i].name);
        }
    }
}

static error_t parse_bench(int key, char *text, struct argp_state *state)
{
    bench_arguments *a = state->input;
    gmd_error error = {""};
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case KEY_VERSUS:
        add_versus(state, a, text);
        return 0;
    case KEY_FILTER:
        need_filter(state, text);
        a->filter = text;
        return 0;
    case KEY_SECONDS:
        need_seconds(state, text, &a->seconds);
        return 0;
    case KEY_RESULT:
        a->common.json_path = text;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "expected options only, found '%s'", text);
        return 0;
    case ARGP_KEY_END:
        refuse_options(state, &a->common);
        if (a->common.json_path && cli_probe_file(a->common.json_path, &error) != GMD_OK) {
            argp_error(state, "--json %s", error.text);
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child bench_children[] = {{&cli_basic_argp, 0, NULL, 0}, {0}};

static const struct argp bench_argp = {
    .options = bench_options,
    .parser = parse_bench,
    .doc = "Measures what an allocator takes for a request, side by side with others: each in a "
           "process of its own, in short rounds that take turns on one core.",
    .children = bench_children,
};

static gmd_bench_options options_of(const bench_arguments *a)
{
    const gmd_run_options *run = &a->common.run;
    gmd_bench_options o = {.allocators = {run->subject.allocator},
                           .allocator_count = a->versus_count + 1,
                           .filter = a->filter,
                           .device = run->device.kind,
                           .device_count = run->conditions.device_count,
                           .capacity_bytes = run->conditions.capacity_bytes,
                           .conf = run->conditions.conf,
                           .lib_directory = a->common.lib_directory,
                           .torch_adapter = run->subject.torch_adapter,
                           .seconds = a->seconds,
                           .patience_s = run->process.call_budget_s + 2 * a->seconds,
                           .seed = run->seed,
                           .shows_progress = run->process.shows_progress && isatty(STDERR_FILENO)};
    for (uint32_t i = 0; i < a->versus_count; i++) {
        o.allocators[i + 1] = a->versus[i];
    }
    return o;
}

/* What is wrong with a SPEC is reported before any process is made. */
static gmd_status check_allocators(const gmd_bench_options *o, gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (uint32_t i = 0; i < o->allocator_count && status == GMD_OK; i++) {
        const gmd_subject_source source = {.spec = o->allocators[i],
                                           .lib_directory = o->lib_directory,
                                           .torch_adapter = o->torch_adapter};
        gmd_error reason = {""};
        status = gmd_subject_check(&source, &reason);
        const char *rest = reason.text + strspn(reason.text, "-");
        rest = i && strncmp(rest, "allocator ", strlen("allocator ")) == 0
                   ? rest + strlen("allocator ")
                   : NULL;
        if (status != GMD_OK) {
            gmd_fail(error, status, "%s%s", rest ? "--versus " : "", rest ? rest : reason.text);
        }
    }
    return status;
}

static gmd_status write_json(const cli_options *o, const gmd_bench_report *report, gmd_error *error)
{
    gmd_output out;
    gmd_status status = gmd_output_open(&out, o->json_path, error);
    if (status == GMD_OK) {
        status = gmd_bench_write_json(report, GMD_VERSION, out.stream, error);
        status = gmd_output_close(&out, status, error);
    }
    return status;
}

static gmd_status bench(const bench_arguments *a, int *exit_status, gmd_error *error)
{
    const cli_options *o = &a->common;
    gmd_bench_options options = options_of(a);
    gmd_bench_report report;
    gmd_status status = check_allocators(&options, error);
    if (status == GMD_OK) {
        status = gmd_bench_run(&options, &report, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    if (!o->quiet && cli_stdout_reports(o) == 0) {
        status = gmd_bench_write_table(&report, stdout, error);
    }
    if (status == GMD_OK && o->json_path) {
        status = write_json(o, &report, error);
    }
    *exit_status = gmd_bench_failures(&report) ? CLI_EXIT_FINDING : CLI_EXIT_OK;
    gmd_bench_report_free(&report);
    return status;
}

int cli_bench(int argc, char **argv)
{
    bench_arguments a = {.seconds = 0.5};
    cli_options_init(&a.common);
    int usage = cli_parse(&bench_argp, argc, argv, &a);
    if (usage != CLI_EXIT_OK) {
        return usage;
    }
    gmd_error error = {""};
    int exit_status = CLI_EXIT_OK;
    gmd_status status = bench(&a, &exit_status, &error);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd bench: %s\n", error.text);
        exit_status = cli_exit_status(status);
    }
    cli_options_free(&a.common);
    return exit_status;
}
