/* diff.c - gmd diff BEFORE AFTER: what grew between two recordings, or two results, by line. */
#include "commands.h"
#include "distinct.h"
#include "inputs.h"
#include "options.h"
#include "page.h"
#include "reading.h"
#include "values.h"
#include "version.h"

#include "gmd_compared_result.h"
#include "gmd_diff_report.h"
#include "gmd_file.h"
#include "gmd_memory_file.h"
#include "gmd_output.h"
#include "gmd_size.h"
#include "gmd_timeline_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_AT = 0x700, KEY_THRESHOLD, KEY_ROWS, KEY_JSON, KEY_MARKDOWN, KEY_HTML, KEY_QUIET = 'q' };
enum { DEFAULT_ROWS = 20, MOST_ROWS = 1000000 };

typedef struct diff_arguments {
    const char *inputs[2];
    size_t input_count;
    const char *json_path, *markdown_path, *html_path;
    bool is_of_end, quiet, has_threshold;
    uint64_t threshold_bytes;
    double threshold_percent; /* of what was there before; 0: the threshold is in bytes */
    uint64_t rows;
    cli_reading reading;
} diff_arguments;

static const struct argp_option diff_options[] = {
    {"at", KEY_AT, "peak|end", 0, "which moment of each is compared (peak)", 1},
    {"threshold", KEY_THRESHOLD, "SIZE|N%", 0,
     "exit status 1 if allocated memory grew by more than that", 1},
    {"rows", KEY_ROWS, "N", 0, "lines of each table (20)", 1},
    {"json", KEY_JSON, "FILE", 0, "write the diff as JSON; -: to standard output, alone", 1},
    {"markdown", KEY_MARKDOWN, "FILE", 0, "write it as Markdown; -: to standard output, alone", 1},
    {"html", KEY_HTML, "FILE", 0, "write a page for a browser, with both recordings", 1},
    {"quiet", KEY_QUIET, NULL, 0, "only the exit status, and errors", 1},
    {0},
};

static void need_threshold(struct argp_state *state, const char *text, diff_arguments *a)
{
    char *end;
    double percent = strtod(text, &end);
    a->has_threshold = true;
    if (end != text && strcmp(end, "%") == 0 && percent > 0 && isfinite(percent)) {
        a->threshold_percent = percent;
    } else if (!gmd_parse_size(text, &a->threshold_bytes)) {
        argp_error(state, "--threshold %s: expected a size (64MiB) or a percentage (5%%)", text);
    }
}

static void need_moment(struct argp_state *state, const char *text, bool *is_of_end)
{
    *is_of_end = strcmp(text, "end") == 0;
    if (!*is_of_end && strcmp(text, "peak") != 0) {
        argp_error(state, "--at %s: expected peak or end", text);
    }
}

static bool takes_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static void check_arguments(struct argp_state *state, const diff_arguments *a)
{
    if (a->input_count != 2) {
        argp_error(state, "expected two PyTorch memory snapshots, or two results of --json");
    }
    if (takes_stdout(a->json_path) + takes_stdout(a->markdown_path) + takes_stdout(a->html_path) >
        1) {
        argp_error(state, "only one report can go to standard output");
    }
    cli_need_writable(state, "--json", a->json_path, a->inputs, a->input_count);
    cli_need_writable(state, "--markdown", a->markdown_path, a->inputs, a->input_count);
    cli_need_writable(state, "--html", a->html_path, a->inputs, a->input_count);
}

static error_t parse_diff(int key, char *text, struct argp_state *state)
{
    diff_arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->reading;
        a->reading.shows_progress = isatty(STDERR_FILENO);
        return 0;
    case KEY_AT:
        need_moment(state, text, &a->is_of_end);
        return 0;
    case KEY_THRESHOLD:
        need_threshold(state, text, a);
        return 0;
    case KEY_ROWS:
        cli_need_number(state, "--rows", text, 1, MOST_ROWS, &a->rows);
        return 0;
    case KEY_JSON:
        a->json_path = text;
        return 0;
    case KEY_MARKDOWN:
        a->markdown_path = text;
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
        if (a->input_count == 2) {
            argp_error(state, "expected two snapshots, found '%s' as well", text);
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

static const struct argp_child diff_children[] = {{&cli_reading_argp, 0, NULL, 0}, {0}};

static const struct argp diff_argp = {
    .options = diff_options,
    .parser = parse_diff,
    .children = diff_children,
    .args_doc = "BEFORE AFTER",
    .doc =
        "Says what grew between two PyTorch memory snapshots, by line of the program and by what "
        "the memory is for. Lines and stacks are matched by their names, not by addresses. What "
        "'gmd diagnose', 'gmd run' and 'gmd replay' write with --json is compared likewise, as far "
        "as it has lines and categories, and by its figures.",
};

static uint64_t threshold_of(const diff_arguments *a, const gmd_diff *diff)
{
    if (!a->has_threshold) {
        return UINT64_MAX;
    }
    return a->threshold_percent > 0
               ? (uint64_t)((double)diff->lines.total[0] * a->threshold_percent / 100)
               : a->threshold_bytes;
}

static gmd_status write_report(const diff_arguments *a, const gmd_diff *diff, const char *path,
                               bool is_json, gmd_error *error)
{
    gmd_output out;
    if (!path) {
        return GMD_OK;
    }
    gmd_status status = gmd_output_open(&out, path, error);
    if (status != GMD_OK) {
        return status;
    }
    status = is_json
                 ? gmd_diff_write_json(diff, GMD_VERSION, threshold_of(a, diff), out.stream, error)
                 : gmd_diff_write_markdown(diff, (uint32_t)a->rows, out.stream, error);
    return gmd_output_close(&out, status, error);
}

static gmd_status report(const diff_arguments *a, const gmd_diff *diff, gmd_error *error)
{
    gmd_status status = GMD_OK;
    if (!a->quiet && !takes_stdout(a->json_path) && !takes_stdout(a->markdown_path) &&
        !takes_stdout(a->html_path)) {
        status = gmd_diff_write_text(diff, (uint32_t)a->rows, gmd_terminal_for(stdout, a->quiet),
                                     stdout, error);
    }
    if (status == GMD_OK) {
        status = write_report(a, diff, a->json_path, true, error);
    }
    return status == GMD_OK ? write_report(a, diff, a->markdown_path, false, error) : status;
}

/* One of the two files: a recording with its diagnosis, or a result. */
typedef struct side {
    gmd_diagnosis diagnosis;
    gmd_diff_input input;
} side;

static gmd_status read_timeline(side *s, const uint8_t *data, size_t size, const char *path,
                                bool is_of_end, gmd_error *error)
{
    gmd_memory_timeline timeline;
    gmd_status status = gmd_memory_timeline_parse(&timeline, data, size, path, error);
    if (status == GMD_OK) {
        status = gmd_timeline_compared(&s->input, &timeline, path, is_of_end, error);
        gmd_memory_timeline_free(&timeline);
    }
    return status;
}

static gmd_status diagnose(side *s, gmd_snapshot *snapshot, const char *path, bool is_of_end,
                           gmd_error *error)
{
    gmd_status status = gmd_diagnosis_make(&s->diagnosis, snapshot, path, error);
    return status == GMD_OK ? gmd_diff_input_of(&s->input, &s->diagnosis, is_of_end, error)
                            : status;
}

/* The file's bytes are given back before the diagnosis takes memory. */
static gmd_status read_side(side *s, const char *path, bool is_of_end, gmd_error *error)
{
    uint8_t *data;
    size_t size;
    gmd_snapshot snapshot = {0};
    gmd_status status = gmd_file_read_any_size(path, &data, &size, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_memory_file kind = gmd_memory_file_of(data, size);
    bool is_recording = kind != GMD_FILE_RESULT && kind != GMD_FILE_TIMELINE;
    if (is_recording) {
        status = gmd_memory_file_parse(&snapshot, data, size, path, error);
    } else if (kind == GMD_FILE_TIMELINE) {
        status = read_timeline(s, data, size, path, is_of_end, error);
    } else {
        status =
            gmd_compared_result_parse(&s->input, (const char *)data, size, path, is_of_end, error);
    }
    free(data);
    return is_recording && status == GMD_OK ? diagnose(s, &snapshot, path, is_of_end, error)
                                            : status;
}

/* What a page shows of a diff: both sides, where they are recordings, and its tables. */
typedef struct shown_diff {
    const char *const *paths;
    const side *sides;
    const gmd_diff *diff;
    uint64_t threshold;
} shown_diff;

static gmd_status put_json(const void *context, FILE *out, gmd_error *error)
{
    const shown_diff *d = context;
    return gmd_diff_write_json(d->diff, GMD_VERSION, d->threshold, out, error);
}

static gmd_status add_diff(gmd_page *page, const void *context, gmd_error *error)
{
    const shown_diff *d = context;
    gmd_status status = GMD_OK;
    for (int i = 0; status == GMD_OK && i < 2; i++) {
        if (d->sides[i].diagnosis.device_count) {
            const char *name = cli_distinct_name(d->paths[i], d->paths, 2);
            status = gmd_page_add_diagnosis(page, &d->sides[i].diagnosis, name, error);
        }
    }
    return status == GMD_OK ? cli_page_add_json(page, put_json, d, error) : status;
}

static gmd_status read_bounded(const diff_arguments *a, side sides[2], size_t index,
                               gmd_error *error)
{
    cli_read read;
    cli_read_begin(&read, &a->reading, a->inputs[index]);
    gmd_status status = read_side(&sides[index], a->inputs[index], a->is_of_end, error);
    return cli_read_end(&read, status, error);
}

static void free_side(side *s)
{
    gmd_diff_input_free(&s->input);
    gmd_diagnosis_free(&s->diagnosis);
}

static gmd_status compare(const diff_arguments *a, const side sides[2], int *exit_status,
                          gmd_error *error)
{
    gmd_diff diff;
    gmd_status status = gmd_diff_make(&diff, &sides[0].input, &sides[1].input, a->is_of_end, error);
    if (status != GMD_OK) {
        return status;
    }
    *exit_status = gmd_diff_growth(&diff) > threshold_of(a, &diff) ? CLI_EXIT_FINDING : CLI_EXIT_OK;
    status = report(a, &diff, error);
    if (status == GMD_OK) {
        const shown_diff shown = {a->inputs, sides, &diff, threshold_of(a, &diff)};
        status = cli_page_write(a->html_path, add_diff, &shown, error);
    }
    gmd_diff_free(&diff);
    return status;
}

int cli_diff(int argc, char **argv)
{
    diff_arguments a = {.rows = DEFAULT_ROWS};
    int usage = cli_parse(&diff_argp, argc, argv, &a);
    if (usage != CLI_EXIT_OK) {
        return usage;
    }
    gmd_error error = {""};
    side sides[2] = {0};
    int exit_status = CLI_EXIT_OK;
    gmd_status status = read_bounded(&a, sides, 0, &error);
    if (status == GMD_OK) {
        status = read_bounded(&a, sides, 1, &error);
    }
    if (status == GMD_OK) {
        status = compare(&a, sides, &exit_status, &error);
    }
    free_side(&sides[0]);
    free_side(&sides[1]);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd diff: %s\n", error.text);
        exit_status = cli_exit_status(status);
    }
    return exit_status;
}
