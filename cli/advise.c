/* advise.c - gmd advise SNAPSHOT: the allocator settings that a recorded job needs least memory
 * with. */
#include "commands.h"
#include "inputs.h"
#include "options.h"
#include "page.h"
#include "reading.h"
#include "values.h"
#include "version.h"

#include "gmd_advice.h"
#include "gmd_advice_report.h"
#include "gmd_output.h"
#include "gmd_size.h"
#include "gmd_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_CAPACITY = 0x700,
    KEY_LIMIT,
    KEY_CONF,
    KEY_WITHOUT,
    KEY_SCALE,
    KEY_ROWS,
    KEY_JOBS,
    KEY_JSON,
    KEY_HTML,
    KEY_QUIET = 'q'
};
enum { DEFAULT_COLUMNS = 80, DEFAULT_ROWS = 8, MOST_ROWS = 80, CONF_MAX = 64, MOST_JOBS = 64 };

typedef struct advise_arguments {
    gmd_advice_request request;
    const char *confs[CONF_MAX];
    const char *json_path, *html_path;
    bool quiet;
    cli_reading reading;
} advise_arguments;

static const struct argp_option advise_options[] = {
    {"capacity", KEY_CAPACITY, "SIZE", 0, "memory of the device that the job is to fit in", 1},
    {"limit", KEY_LIMIT, "SIZE", 0,
     "limit of reserved memory, as set by the memory fraction; without both: what the recorded job "
     "had",
     1},
    {"conf", KEY_CONF, "STRING", 0,
     "settings to compare, as in PYTORCH_CUDA_ALLOC_CONF; again for more; without: they are "
     "searched for",
     1},
    {"without-line", KEY_WITHOUT, "FILE:LINE", 0, "the job without the requests of this line", 1},
    {"scale", KEY_SCALE, "N", 0, "a batch N times as large: an estimate", 1},
    {"rows", KEY_ROWS, "N", 0, "settings that are shown (8)", 1},
    {"jobs", KEY_JOBS, "N", 0, "replays at a time (one for each core)", 1},
    {"json", KEY_JSON, "FILE", 0, "write the advice as JSON; -: to standard output, alone", 1},
    {"html", KEY_HTML, "FILE", 0, "write a page for a browser, with the settings as a table", 1},
    {"quiet", KEY_QUIET, NULL, 0, "only the exit status, and errors", 1},
    {0},
};

static void need_scale(struct argp_state *state, const char *text, double *scale)
{
    char *end;
    *scale = strtod(text, &end);
    if (end == text || *end || !isfinite(*scale) || *scale < 0.001 || *scale > 1000) {
        argp_error(state, "--scale %s: expected a number from 0.001 to 1000", text);
    }
}

static void add_conf(struct argp_state *state, advise_arguments *a, const char *text)
{
    if (a->request.conf_count == CONF_MAX) {
        argp_error(state, "more than %d settings", CONF_MAX);
    }
    a->confs[a->request.conf_count++] = text;
}

static int count_stdout(const advise_arguments *a)
{
    return (a->json_path && strcmp(a->json_path, "-") == 0) +
           (a->html_path && strcmp(a->html_path, "-") == 0);
}

static void check_arguments(struct argp_state *state, const advise_arguments *a)
{
    if (!a->request.path) {
        argp_error(state, "expected a PyTorch memory snapshot");
    }
    if (count_stdout(a) > 1) {
        argp_error(state, "only one report can go to standard output");
    }
    cli_need_writable(state, "--json", a->json_path, &a->request.path, 1);
    cli_need_writable(state, "--html", a->html_path, &a->request.path, 1);
}

static error_t parse_advise(int key, char *text, struct argp_state *state)
{
    advise_arguments *a = state->input;
    gmd_advice_request *r = &a->request;
    uint64_t number = 0;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->reading;
        return 0;
    case KEY_CAPACITY:
        cli_need_size(state, "--capacity", text, 2 * GMD_MIB, 16384 * GMD_GIB, &r->capacity_bytes);
        return 0;
    case KEY_LIMIT:
        cli_need_size(state, "--limit", text, 2 * GMD_MIB, 16384 * GMD_GIB, &r->limit_bytes);
        return 0;
    case KEY_CONF:
        add_conf(state, a, text);
        return 0;
    case KEY_WITHOUT:
        r->without_line = text;
        return 0;
    case KEY_SCALE:
        need_scale(state, text, &r->scale);
        return 0;
    case KEY_ROWS:
        cli_need_number(state, "--rows", text, 1, MOST_ROWS, &number);
        r->rows = number;
        return 0;
    case KEY_JOBS:
        cli_need_number(state, "--jobs", text, 1, MOST_JOBS, &number);
        r->processes = (unsigned)number;
        return 0;
    case KEY_JSON:
        a->json_path = text;
        return 0;
    case KEY_HTML:
        a->html_path = text;
        return 0;
    case KEY_QUIET:
        a->quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        cli_refuse_trace(state, text);
        if (r->path) {
            argp_error(state, "expected one snapshot, found '%s' as well", text);
        }
        r->path = text;
        return 0;
    case ARGP_KEY_END:
        check_arguments(state, a);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child advise_children[] = {{&cli_reading_argp, 0, NULL, 0}, {0}};

static const struct argp advise_argp = {
    .options = advise_options,
    .parser = parse_advise,
    .children = advise_children,
    .args_doc = "SNAPSHOT",
    .doc = "Says with which settings of PyTorch's allocator a recorded job fits, and in how little "
           "memory: it replays the job's requests under one setting after the other. SNAPSHOT is "
           "what torch.cuda.memory._dump_snapshot() writes (.pickle, .pickle.gz). Exit status 1: "
           "the job fits with none of them.",
};

static gmd_status write_json(const advise_arguments *a, const gmd_advice *advice, gmd_error *error)
{
    gmd_output out;
    gmd_status status = gmd_output_open(&out, a->json_path, error);
    if (status == GMD_OK) {
        status = gmd_advice_write_json(advice, GMD_VERSION, out.stream, error);
        status = gmd_output_close(&out, status, error);
    }
    return status;
}

static gmd_status put_json(const void *context, FILE *out, gmd_error *error)
{
    return gmd_advice_write_json(context, GMD_VERSION, out, error);
}

/* The tables, and the history that was advised on, as it was recorded. */
static gmd_status add_advice(gmd_page *page, const void *context, gmd_error *error)
{
    const gmd_advice *advice = context;
    gmd_status status = cli_page_add_json(page, put_json, advice, error);
    return status == GMD_OK ? gmd_page_add_diagnosis(page, &advice->diagnosis,
                                                     gmd_file_name(advice->diagnosis.name), error)
                            : status;
}

static gmd_status write_text(const advise_arguments *a, const gmd_advice *advice, gmd_error *error)
{
    gmd_terminal terminal = gmd_terminal_for(stdout, a->quiet);
    const gmd_advice_view view = {.terminal = terminal,
                                  .columns = terminal.columns ? terminal.columns : DEFAULT_COLUMNS};
    return gmd_advice_write_text(advice, &view, stdout, error);
}

static gmd_status advise(const advise_arguments *a, int *exit_status, gmd_error *error)
{
    gmd_advice advice;
    gmd_status status = gmd_advise(&advice, &a->request, error);
    if (status != GMD_OK) {
        return status;
    }
    *exit_status = gmd_advice_fits(&advice) ? CLI_EXIT_OK : CLI_EXIT_FINDING;
    if (!a->quiet && count_stdout(a) == 0) {
        status = write_text(a, &advice, error);
    }
    if (status == GMD_OK && a->json_path) {
        status = write_json(a, &advice, error);
    }
    if (status == GMD_OK) {
        status = cli_page_write(a->html_path, add_advice, &advice, error);
    }
    gmd_advice_free(&advice);
    return status;
}

int cli_advise(int argc, char **argv)
{
    char lib_directory[4096];
    advise_arguments a = {.request = {.scale = 1, .rows = DEFAULT_ROWS}};
    cli_find_lib_directory(lib_directory, sizeof lib_directory);
    a.request.lib_directory = lib_directory;
    a.request.confs = a.confs;
    int usage = cli_parse(&advise_argp, argc, argv, &a);
    if (usage != CLI_EXIT_OK) {
        return usage;
    }
    a.request.max_memory = a.reading.max_bytes;
    a.request.keeps_diagnosis = a.html_path != NULL;
    gmd_error error = {""};
    int exit_status = CLI_EXIT_OK;
    gmd_status status = advise(&a, &exit_status, &error);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd advise: %s\n", error.text);
        exit_status = cli_exit_status(status);
    }
    return exit_status;
}
