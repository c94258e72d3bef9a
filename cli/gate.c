/* gate.c - gmd gate: a fixed battery with a verdict, for a CI. */
#include "commands.h"
#include "found.h"
#include "inputs.h"
#include "interruption.h"
#include "progress.h"
#include "rerun.h"
#include "results.h"
#include "values.h"
#include "writable.h"

#include "gmd_clock.h"
#include "gmd_command.h"
#include "gmd_gate.h"
#include "gmd_report.h"
#include "gmd_size.h"
#include "gmd_status_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_QUICK = 0x600,
    KEY_FAIL_FAST,
    KEY_OUT,
    KEY_ONLY,
    KEY_DEEP,
    KEY_ROUNDS,
    KEY_BASELINE,
    KEY_UPDATE,
    KEY_VERSUS,
    KEY_HISTORY
};

#define HISTORY_MAX 64

#define TIMEOUT_SECONDS 5 /* a correct allocator answers in microseconds */

typedef struct gate_arguments {
    cli_options common;
    gmd_gate_options gate;
    const char *histories[HISTORY_MAX];
    char subject[1400], battery[2400]; /* options as words for a shell */
} gate_arguments;

static const struct argp_option gate_options[] = {
    {"quick", KEY_QUICK, NULL, 0, "a fifth of the runs: under a minute", 1},
    {"deep", KEY_DEEP, "DURATION", 0,
     "the battery, and random and guided sequences until so much time is over (90s, 10m, 8h)", 1},
    {"time", 0, NULL, OPTION_ALIAS, NULL, 1},
    {"baseline", KEY_BASELINE, "FILE", 0,
     "also judge memory and speed, by the figures that this file has", 1},
    {"update-baseline", KEY_UPDATE, NULL, 0,
     "measure memory and speed and write the figures to the file of --baseline", 1},
    {"versus", KEY_VERSUS, "SPEC", 0,
     "the allocator that speed is held against (what the baseline says, else reference)", 1},
    {"history", KEY_HISTORY, "FILE", 0,
     "a PyTorch memory snapshot whose memory is measured, beside those that ship with gmd", 1},
    {"fail-fast", KEY_FAIL_FAST, NULL, 0, "end with the first finding", 1},
    {"out", KEY_OUT, "DIR", 0, "where the minimised cases are written (gmd-cases); none: nowhere",
     1},
    {"only", KEY_ONLY, "PART[/ITEM]", 0, "only that part of the battery, or one item of it", 1},
    {"rounds", KEY_ROUNDS, "FILE", 0,
     "instead of the battery: the requests of a .gmd file again and again must need no more memory",
     1},
    {0},
};

static error_t check_arguments(const gate_arguments *a, struct argp_state *state)
{
    const cli_options *c = &a->common;
    gmd_error error = {""};
    if (c->run.device.kind != GMD_DEVICE_SIM) {
        argp_error(state, "the gate needs the simulated device; its cases can then be run with "
                          "'gmd run CASE --device cuda'");
    }
    if (c->has_capacity || c->run.conditions.limit_bytes ||
        gmd_schedule_is_stated(&c->run.conditions.schedule) ||
        gmd_schedule_is_stated(&c->run.conditions.interleave)) {
        argp_error(state, "--capacity, --limit, --schedule and --interleave are the battery's own: "
                          "they cannot be given");
    }
    cli_refuse_views(state, c);
    if (c->run.cases.directory && cli_probe_folder(c->run.cases.directory, &error) != GMD_OK) {
        argp_error(state, "--out %s", error.text);
    }
    const gmd_gate_options *g = &a->gate;
    if (g->updates_baseline && !g->baseline) {
        argp_error(state, "--update-baseline: needs --baseline FILE, which it writes");
    }
    cli_need_writable(state, "--baseline", g->updates_baseline ? g->baseline : NULL, NULL, 0);
    if (g->rounds_file && g->baseline) {
        argp_error(state, "--rounds judges one file: --baseline cannot be given with it");
    }
    if ((g->versus || g->history_count) && !g->baseline) {
        argp_error(state,
                   "--versus and --history are about memory and speed, which need --baseline");
    }
    return 0;
}

static void add_history(gate_arguments *a, const char *path, struct argp_state *state)
{
    if (a->gate.history_count == HISTORY_MAX) {
        argp_error(state, "--history %s: there are %d already", path, HISTORY_MAX);
    }
    a->histories[a->gate.history_count++] = path;
}

static error_t parse_gate(int key, char *text, struct argp_state *state)
{
    gate_arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case KEY_QUICK:
        a->gate.is_quick = true;
        return 0;
    case KEY_FAIL_FAST:
        a->gate.fails_fast = true;
        return 0;
    case KEY_OUT:
        a->common.run.cases.directory = strcmp(text, "none") == 0 ? NULL : text;
        return 0;
    case KEY_ONLY:
        a->gate.only = text;
        return 0;
    case KEY_DEEP:
        if (!cli_parse_time(text, &a->gate.seconds)) {
            argp_error(state, "--deep %s: expected a time over 0 such as 90s, 10m or 8h", text);
        }
        return 0;
    case KEY_BASELINE:
        a->gate.baseline = text;
        return 0;
    case KEY_UPDATE:
        a->gate.updates_baseline = true;
        return 0;
    case KEY_VERSUS:
        a->gate.versus = text;
        return 0;
    case KEY_HISTORY:
        add_history(a, text, state);
        return 0;
    case KEY_ROUNDS:
        a->gate.rounds_file = text;
        return 0;
    case ARGP_KEY_ARG:
        cli_refuse_argument(state, text);
        return 0;
    case ARGP_KEY_END:
        return check_arguments(a, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child gate_children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};

static const struct argp gate_argp = {
    .options = gate_options,
    .parser = parse_gate,
    .doc = "Runs a fixed battery against an allocator on the simulated device, all oracles on: "
           "cases that real allocators failed on, scenarios, failing device calls, random "
           "and short sequences, repeated rounds; with a baseline also memory and speed. The same "
           "seed gives the same verdict on correctness and memory."
           "\vExit status: 0 clean, 1 findings, 2 bad usage or an allocator that cannot be loaded, "
           "3 gmd failed or was interrupted. --conf: these settings only; without it those that "
           "the allocator takes "
           "are tried. As to the common options, --timeout is 5 and --devices 2 unless "
           "given, --cases is --out, and --capacity, --limit, --schedule, --interleave, "
           "--device=cuda, "
           "--perfetto and --snapshot are refused.",
    .children = gate_children,
};

/* --- progress ---------------------------------------------------------------------------- */

typedef struct progress {
    gmd_status_line line;
    double seconds; /* when it ends (--deep); 0: when all is done */
} progress;

static void show_progress(void *context, const gmd_gate_progress *p)
{
    progress *shown = context;
    char left[CLI_LEFT_BYTES];
    cli_time_left(p->seconds, shown->seconds, p->seconds, left);
    bool is_usual = strcmp(p->doing, "running") == 0;
    gmd_status_show(&shown->line, p->seconds, "%s%s%zu found, %s/%.40s%s%s, %" PRIu64 " runs",
                    left + (*left ? 2 : 0), *left ? ", " : "", p->findings, p->part, p->item,
                    is_usual ? "" : ", ", is_usual ? "" : p->doing, p->runs);
}

/* --- the gate ---------------------------------------------------------------------------- */

/* What a command that is printed needs to mean the same allocator and the same battery. */
static void word_options(gate_arguments *a)
{
    const cli_options *c = &a->common;
    char number[16];
    gmd_command subject = gmd_command_begin(a->subject, sizeof a->subject, "");
    cli_command_subject(&subject, c);
    gmd_command_end(&subject);
    gmd_command battery = gmd_command_begin(a->battery, sizeof a->battery, "");
    if (c->has_devices) {
        snprintf(number, sizeof number, "%" PRIu32, c->run.conditions.device_count);
        gmd_command_option(&battery, "--devices", number);
    }
    for (size_t i = 0; i < a->gate.history_count; i++) {
        gmd_command_option(&battery, "--history", a->histories[i]);
    }
    gmd_command_end(&battery);
    a->gate.subject_words = a->subject + strspn(a->subject, " ");
    a->gate.battery_words = a->battery + strspn(a->battery, " ");
}

static gmd_status run_gate(gate_arguments *a, cli_results *results, gmd_gate_result *result,
                           gmd_error *error)
{
    gmd_gate_options *o = &a->gate;
    progress shown = {.seconds = o->seconds};
    cli_found found = {.options = &a->common, .command = "gate", .start = gmd_clock_s()};
    o->run = &a->common.run;
    o->histories = a->histories;
    o->device_max = a->common.has_devices ? a->common.run.conditions.device_count : 2;
    o->is_interrupted = cli_interruption_awaited();
    o->progress = a->common.run.process.shows_progress ? show_progress : NULL;
    o->context = &shown;
    o->tell = cli_tell_found;
    o->listener = &found;
    word_options(a);
    gmd_status status = gmd_gate_run(o, result, error);
    gmd_status_clear(&shown.line);
    gmd_outcome *outcome = status == GMD_OK ? cli_results_add(results, "gate", "gate") : NULL;
    if (!outcome) {
        return status;
    }
    gmd_gate_outcome(result, outcome);
    results->gate = result;
    return GMD_OK;
}

int cli_gate(int argc, char **argv)
{
    gate_arguments a = {0};
    cli_options_init(&a.common);
    a.common.run.process.call_budget_s = TIMEOUT_SECONDS;
    int usage = cli_parse(&gate_argp, argc, argv, &a);
    if (usage != CLI_EXIT_OK) {
        return usage;
    }
    cli_results results;
    cli_results_open(&results, &a.common, "gate");
    gmd_gate_result result = {0};
    gmd_error error = {""};
    gmd_status status = run_gate(&a, &results, &result, &error);
    if (status != GMD_OK) {
        cli_results_add_error(&results, "gate", "gate", status, &error);
    }
    cli_rerun rerun = {.count = 0};
    cli_rerun_findings(&rerun, &results);
    int exit_status = cli_results_report(&results);
    cli_rerun_free(&rerun);
    gmd_gate_result_free(&result);
    cli_results_free(&results);
    cli_options_free(&a.common);
    return exit_status;
}
