/* diagnose.c - gmd diagnose SNAPSHOT: what is wrong in a recorded job, where, why, and the fix. */
#include "commands.h"
#include "distinct.h"
#include "inputs.h"
#include "options.h"
#include "page.h"
#include "reading.h"
#include "values.h"
#include "version.h"

#include "gmd_comparison.h"
#include "gmd_diagnosis_report.h"
#include "gmd_file.h"
#include "gmd_gzip_stream.h"
#include "gmd_memory_file.h"
#include "gmd_min.h"
#include "gmd_output.h"
#include "gmd_size.h"
#include "gmd_stack_profile.h"
#include "gmd_text.h"
#include "gmd_timeline_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_ALL_FRAMES = 0x600,
    KEY_ROWS,
    KEY_CAPACITY,
    KEY_JSON,
    KEY_PPROF,
    KEY_FOLDED,
    KEY_HTML,
    KEY_QUIET = 'q'
};
enum { DEFAULT_COLUMNS = 80, DEFAULT_ROWS = 8, MOST_ROWS = 1000000 };

typedef struct diagnose_arguments {
    const char *inputs[GMD_COMPARED_MAX];
    size_t input_count;
    const char *json_path, *pprof_path, *folded_path, *html_path;
    bool all_frames, quiet;
    uint64_t rows;
    uint64_t capacity_bytes; /* 0: not known */
    cli_reading reading;
} diagnose_arguments;

static const struct argp_option diagnose_options[] = {
    {"all-frames", KEY_ALL_FRAMES, NULL, 0, "paths of files whole, frames of libraries too", 1},
    {"rows", KEY_ROWS, "N", 0, "lines of each table (8)", 1},
    {"capacity", KEY_CAPACITY, "SIZE", 0,
     "memory of the device, as an out-of-memory error's message says it: then what others held "
     "of it is reported",
     1},
    {"json", KEY_JSON, "FILE", 0, "write the diagnosis as JSON; -: to standard output, alone", 1},
    {"pprof", KEY_PPROF, "FILE", 0,
     "who holds the memory at the peak, by stack, for pprof and speedscope (.pb, .pb.gz)", 1},
    {"folded", KEY_FOLDED, "FILE", 0, "the same as folded stacks, for flame graphs", 1},
    {"html", KEY_HTML, "FILE", 0, "write a page for a browser: findings, timeline, flame graph", 1},
    {"quiet", KEY_QUIET, NULL, 0, "only the exit status, and errors", 1},
    {0},
};

static void need_capacity(struct argp_state *state, const char *text, uint64_t *bytes)
{
    if (!gmd_parse_size(text, bytes) || *bytes == 0) {
        argp_error(state, "--capacity %s: expected a size, such as 79.18GiB", text);
    }
}

static bool takes_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static int count_stdout(const diagnose_arguments *a)
{
    return takes_stdout(a->json_path) + takes_stdout(a->pprof_path) + takes_stdout(a->folded_path) +
           takes_stdout(a->html_path);
}

static void check_arguments(struct argp_state *state, const diagnose_arguments *a)
{
    if (a->input_count == 0) {
        argp_error(state, "expected a PyTorch memory snapshot");
    }
    if (a->input_count > 1 && (a->pprof_path || a->folded_path)) {
        argp_error(state, "--pprof and --folded are of one snapshot");
    }
    if (count_stdout(a) > 1) {
        argp_error(state, "only one report can go to standard output");
    }
    cli_need_writable(state, "--json", a->json_path, a->inputs, a->input_count);
    cli_need_writable(state, "--pprof", a->pprof_path, a->inputs, a->input_count);
    cli_need_writable(state, "--folded", a->folded_path, a->inputs, a->input_count);
    cli_need_writable(state, "--html", a->html_path, a->inputs, a->input_count);
}

static error_t parse_diagnose(int key, char *text, struct argp_state *state)
{
    diagnose_arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->reading;
        a->reading.shows_progress = isatty(STDERR_FILENO);
        return 0;
    case KEY_ALL_FRAMES:
        a->all_frames = true;
        return 0;
    case KEY_ROWS:
        cli_need_number(state, "--rows", text, 1, MOST_ROWS, &a->rows);
        return 0;
    case KEY_CAPACITY:
        need_capacity(state, text, &a->capacity_bytes);
        return 0;
    case KEY_JSON:
        a->json_path = text;
        return 0;
    case KEY_PPROF:
        a->pprof_path = text;
        return 0;
    case KEY_FOLDED:
        a->folded_path = text;
        return 0;
    case KEY_HTML:
        a->html_path = text;
        return 0;
    case KEY_QUIET:
        a->quiet = true;
        a->reading.shows_progress = false;
        return 0;
    case ARGP_KEY_ARG:
        cli_refuse_trace(state, text);
        if (a->input_count == GMD_COMPARED_MAX) {
            argp_error(state, "expected at most %d snapshots", GMD_COMPARED_MAX);
        } else {
            a->inputs[a->input_count++] = text;
        }
        return 0;
    case ARGP_KEY_END:
        check_arguments(state, a);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child diagnose_children[] = {{&cli_reading_argp, 0, NULL, 0}, {0}};

static const struct argp diagnose_argp = {
    .options = diagnose_options,
    .parser = parse_diagnose,
    .children = diagnose_children,
    .args_doc = "SNAPSHOT...",
    .doc = "Says what is wrong in the memory of a recorded job, where in its source, why, and what "
           "to do about it. SNAPSHOT is what torch.cuda.memory._dump_snapshot() writes (.pickle, "
           ".pickle.gz). Of RMM's log, a heap profile of pprof (JAX) and torch.profiler's memory "
           "timeline it says who holds the memory. Several are ranks of one job, or times of it, "
           "and compared. Exit status "
           "1: there is a finding.",
};

/* What was diagnosed, in the order of the arguments; or a memory timeline, the only one. */
typedef struct diagnosed {
    const char *const *paths;
    gmd_diagnosis *items;
    size_t count;
    const char *timeline_name; /* NULL: it is none */
    gmd_memory_timeline timeline;
} diagnosed;

typedef gmd_status report_writer(const diagnosed *all, FILE *out, gmd_error *error);

static gmd_status write_json(const diagnosed *all, FILE *out, gmd_error *error)
{
    return all->timeline_name
               ? gmd_timeline_write_json(&all->timeline, all->timeline_name, GMD_VERSION, out,
                                         error)
               : gmd_diagnosis_write_json(all->items, all->count, GMD_VERSION, out, error);
}

static gmd_status write_pprof(const diagnosed *all, FILE *out, gmd_error *error)
{
    return gmd_stack_profile_write_pprof(&all->items[0].devices[0].facts, out, error);
}

static gmd_status write_folded(const diagnosed *all, FILE *out, gmd_error *error)
{
    return gmd_stack_profile_write_folded(&all->items[0].devices[0].facts, out, error);
}

/* A name that ends with .gz is written compressed. */
static gmd_status write_report(const char *path, report_writer *writer, const diagnosed *all,
                               gmd_error *error)
{
    gmd_output out;
    if (!path) {
        return GMD_OK;
    }
    gmd_status status = gmd_output_open(&out, path, error);
    if (status != GMD_OK) {
        return status;
    }
    if (gmd_text_ends_with(path, ".gz")) {
        out.stream = gmd_gzip_stream(out.stream);
    }
    status = out.stream ? writer(all, out.stream, error)
                        : gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory to compress", path);
    return gmd_output_close(&out, status, error);
}

static gmd_status add_diagnoses(gmd_page *page, const void *context, gmd_error *error)
{
    const diagnosed *all = context;
    gmd_status status = GMD_OK;
    for (size_t i = 0; status == GMD_OK && i < all->count; i++) {
        const char *name = cli_distinct_name(all->paths[i], all->paths, all->count);
        status = gmd_page_add_diagnosis(page, &all->items[i], name, error);
    }
    return status;
}

static gmd_status write_reports(const diagnose_arguments *a, const diagnosed *all, gmd_error *error)
{
    gmd_status status = write_report(a->json_path, write_json, all, error);
    if (status == GMD_OK) {
        status = cli_page_write(a->html_path, add_diagnoses, all, error);
    }
    if (all->timeline_name || all->items[0].device_count == 0 || status != GMD_OK) {
        return status;
    }
    status = write_report(a->pprof_path, write_pprof, all, error);
    return status == GMD_OK ? write_report(a->folded_path, write_folded, all, error) : status;
}

static gmd_status write_text(const diagnose_arguments *a, const diagnosed *all, gmd_error *error)
{
    gmd_terminal terminal = gmd_terminal_for(stdout, a->quiet);
    const gmd_diagnosis_view view = {.terminal = terminal,
                                     .columns =
                                         terminal.columns ? terminal.columns : DEFAULT_COLUMNS,
                                     .all_frames = a->all_frames,
                                     .rows = (uint32_t)a->rows};
    gmd_status status = GMD_OK;
    if (all->timeline_name) {
        return gmd_timeline_write_text(&all->timeline, all->timeline_name, &view, stdout, error);
    }
    if (all->count > 1) {
        status = gmd_diagnosis_write_differences(all->items, all->count, &view, stdout, error);
    }
    for (size_t i = 0; status == GMD_OK && i < all->count; i++) {
        fputs(i ? "\n" : "", stdout);
        status = gmd_diagnosis_write_text(&all->items[i], &view, stdout, error);
    }
    return status;
}

static gmd_status report(const diagnose_arguments *a, const diagnosed *all, gmd_error *error)
{
    gmd_status status = GMD_OK;
    if (!a->quiet && count_stdout(a) == 0) {
        status = write_text(a, all, error);
    }
    return status == GMD_OK ? write_reports(a, all, error) : status;
}

/* It has no stacks, and is told of alone. */
static gmd_status read_timeline(const diagnose_arguments *a, diagnosed *all, const uint8_t *data,
                                size_t size, const char *path, gmd_error *error)
{
    if (a->input_count > 1 || a->pprof_path || a->folded_path || a->html_path) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s: is a memory timeline, which has neither lines to compare nor stacks "
                        "for --pprof, --folded and --html; gmd diff compares two by category",
                        path);
    }
    all->timeline_name = path;
    return gmd_memory_timeline_parse(&all->timeline, data, size, path, error);
}

/* The file's bytes are given back before the diagnosis takes memory. */
static gmd_status read_input(const diagnose_arguments *a, diagnosed *all, const char *path,
                             gmd_error *error)
{
    uint8_t *data;
    size_t size;
    gmd_snapshot snapshot = {0};
    gmd_status status = gmd_file_read_any_size(path, &data, &size, error);
    if (status != GMD_OK) {
        return status;
    }
    bool is_timeline = gmd_memory_file_of(data, size) == GMD_FILE_TIMELINE;
    status = is_timeline ? read_timeline(a, all, data, size, path, error)
                         : gmd_memory_file_parse(&snapshot, data, size, path, error);
    free(data);
    if (status == GMD_OK && !is_timeline) {
        status = gmd_diagnosis_make(&all->items[all->count], &snapshot, path, error);
        all->count += status == GMD_OK;
    }
    if (status == GMD_OK && !is_timeline && a->capacity_bytes) {
        status = gmd_diagnosis_know_capacity(&all->items[all->count - 1], a->capacity_bytes, error);
    }
    return status;
}

static gmd_status diagnose(const diagnose_arguments *a, int *exit_status, gmd_error *error)
{
    diagnosed all = {.paths = a->inputs, .items = calloc(a->input_count, sizeof *all.items)};
    gmd_status status = GMD_OK;
    if (!all.items) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory");
    }
    for (size_t i = 0; status == GMD_OK && i < a->input_count; i++) {
        cli_read read;
        cli_read_begin(&read, &a->reading, a->inputs[i]);
        status = cli_read_end(&read, read_input(a, &all, a->inputs[i], error), error);
    }
    for (size_t i = 0; i < all.count; i++) {
        *exit_status = all.items[i].finding_count ? CLI_EXIT_FINDING : *exit_status;
    }
    if (status == GMD_OK) {
        status = report(a, &all, error);
    }
    for (size_t i = 0; i < all.count; i++) {
        gmd_diagnosis_free(&all.items[i]);
    }
    gmd_memory_timeline_free(&all.timeline);
    free(all.items);
    return status;
}

int cli_diagnose(int argc, char **argv)
{
    diagnose_arguments a = {.rows = DEFAULT_ROWS};
    int usage = cli_parse(&diagnose_argp, argc, argv, &a);
    if (usage != CLI_EXIT_OK) {
        return usage;
    }
    gmd_error error = {""};
    int exit_status = CLI_EXIT_OK;
    gmd_status status = diagnose(&a, &exit_status, &error);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd diagnose: %s\n", error.text);
        exit_status = cli_exit_status(status);
    }
    return exit_status;
}
