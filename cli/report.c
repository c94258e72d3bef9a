/* report.c - gmd report INPUT -o FILE: a case as something that can be read or run without gmd. */
#include "commands.h"
#include "options.h"
#include "probe.h"

#include "gmd_file.h"
#include "gmd_known.h"
#include "gmd_size.h"
#include "reproducer.h"
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_ALLOCATOR = 0x600, KEY_ORACLE, KEY_HISTORY, KEY_LAST };

typedef struct report_arguments {
    const char *input, *output, *allocator, *oracle;
    const char *history; /* a store, to be shown instead of a case */
    uint64_t last;
} report_arguments;

/* What FILE can end with. */
static const struct {
    const char *ending;
    gmd_status (*write)(const gmd_reproducer *reproducer, FILE *out, gmd_error *error);
} formats[] = {
    {".c", gmd_reproducer_write_c},
    {".py", gmd_reproducer_write_python},
};

static const struct argp_option report_options[] = {
    {"output", 'o', "FILE", 0,
     "NAME.c: a C program that makes the case's requests by itself; NAME.py: a script that makes "
     "them of PyTorch's own allocator",
     1},
    {"allocator", KEY_ALLOCATOR, "SPEC", 0,
     "the allocator that the case is for, if it does not say", 1},
    {"history", KEY_HISTORY, "FILE", 0,
     "instead of a case: the runs in a file of --store, each workload's beside each other", 1},
    {"last", KEY_LAST, "N", 0, "of --history: the last N runs of each workload (10)", 1},
    {"oracle", KEY_ORACLE, "NAME", 0, "which verdict it is to show, if the case does not say", 1},
    {0},
};

static int format_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(dot, formats[i].ending) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static void check_arguments(const report_arguments *a, struct argp_state *state)
{
    gmd_error error = {""};
    char names[600];
    if (a->history) {
        if (a->input || a->output || a->allocator || a->oracle) {
            argp_error(state, "--history goes with --last only: it shows runs, and no case");
        }
    } else if (!a->input) {
        argp_error(state, "expected a .gmd case");
    } else if (!a->output) {
        argp_error(state, "expected -o FILE");
    } else if (format_of(a->output) < 0) {
        argp_error(state, "-o %s: this version writes NAME.c and NAME.py", a->output);
    } else if (a->oracle && !gmd_oracle_is_named(a->oracle)) {
        gmd_oracle_names(names, sizeof names);
        argp_error(state, "--oracle %s: there is no such oracle; there are %s", a->oracle, names);
    } else if (cli_probe_file(a->output, &error) != GMD_OK) {
        argp_error(state, "%s", error.text);
    }
}

static error_t parse_report(int key, char *text, struct argp_state *state)
{
    report_arguments *a = state->input;
    switch (key) {
    case 'o':
        a->output = text;
        return 0;
    case KEY_ALLOCATOR:
        a->allocator = text;
        return 0;
    case KEY_ORACLE:
        a->oracle = text;
        return 0;
    case KEY_HISTORY:
        a->history = text;
        return 0;
    case KEY_LAST:
        if (!gmd_parse_u64(text, &a->last) || a->last < 1 || a->last > INT32_MAX) {
            argp_error(state, "--last %s: expected a whole number over 0", text);
        }
        return 0;
    case ARGP_KEY_ARG:
        if (a->input) {
            argp_error(state, "expected one case, found '%s' as well", text);
        }
        a->input = text;
        return 0;
    case ARGP_KEY_END:
        check_arguments(a, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp report_argp = {
    .options = report_options,
    .parser = parse_report,
    .args_doc = "CASE\n--history FILE",
    .doc = "Writes a .gmd case as a program that shows the defect without gmd, or shows how the "
           "figures of stored runs changed.",
};

/* What the command line says comes before what the case says of itself. */
static void describe(const report_arguments *a, char *text, gmd_reproducer *r)
{
    const char *slash = strrchr(a->output, '/');
    r->name = slash ? slash + 1 : a->output;
    gmd_reproducer_read_comments(r, text);
    if (r->oracle && !gmd_oracle_is_named(r->oracle)) {
        r->oracle = r->message = r->origin = r->allocator = NULL; /* a comment of another kind */
    }
    if (a->oracle && (!r->oracle || strcmp(a->oracle, r->oracle) != 0)) {
        r->oracle = a->oracle;
        r->message = "what this oracle finds (docs/oracles.md of gmd)";
    }
    r->allocator = a->allocator ? a->allocator : r->allocator;
}

static gmd_status write_report(const report_arguments *a, const gmd_reproducer *r, gmd_error *error)
{
    char *text = NULL; /* whole before the file is touched */
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    gmd_status status = memory ? formats[format_of(a->output)].write(r, memory, error)
                               : gmd_fail(error, GMD_NO_MEMORY, "no host memory for a report");
    if (memory && fclose(memory) != 0 && status == GMD_OK) {
        status = gmd_fail(error, GMD_NO_MEMORY, "no host memory for a report");
    }
    FILE *out = status == GMD_OK ? fopen(a->output, "w") : NULL;
    if (status == GMD_OK) {
        bool is_written = out && fwrite(text, 1, size, out) == size;
        is_written = out && fclose(out) == 0 && is_written;
        status = is_written ? GMD_OK
                            : gmd_fail(error, GMD_FAILED, "%s: cannot be written: %s", a->output,
                                       strerror(errno));
    }
    free(text);
    return status;
}

static gmd_status report(const report_arguments *a, gmd_error *error)
{
    uint8_t *text = NULL;
    size_t size = 0;
    gmd_trace trace = {0};
    gmd_status status = gmd_file_read(a->input, &text, &size, error);
    if (status == GMD_OK) {
        status = gmd_trace_parse(&trace, (const char *)text, size, a->input, error);
    }
    if (status == GMD_OK) {
        gmd_reproducer r = {.trace = &trace};
        describe(a, (char *)text, &r);
        status = write_report(a, &r, error);
    }
    gmd_trace_free(&trace);
    free(text);
    return status;
}

int cli_report(int argc, char **argv)
{
    report_arguments a = {.last = 10};
    int usage = cli_parse(&report_argp, argc, argv, &a);
    if (usage != GMD_EXIT_OK) {
        return usage;
    }
    gmd_error error = {""};
    gmd_status status =
        a.history ? gmd_store_history(a.history, a.last, stdout, &error) : report(&a, &error);
    if (status != GMD_OK) {
        fprintf(stderr, "gmd report: %s\n", error.text);
    }
    return cli_exit_status(status);
}
