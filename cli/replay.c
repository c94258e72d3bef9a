/* replay.c - gmd replay SNAPSHOT|TRACE [--check]: a recorded history against an allocator. */
#include "commands.h"
#include "inputs.h"
#include "interruption.h"
#include "play_inputs.h"
#include "results.h"
#include "run_workload.h"
#include "smallest.h"
#include "sweep.h"
#include "writable.h"

#include "gmd_assert.h"
#include "gmd_check.h"
#include "gmd_history.h"
#include "gmd_history_replay.h"
#include "gmd_output.h"
#include "gmd_quirks.h"
#include "gmd_recorded_places.h"
#include "gmd_runner.h"
#include "gmd_session.h"
#include "gmd_size.h"
#include "gmd_snapshot.h"
#include "gmd_trace_validity.h"
#include "gmd_truth.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_CHECK = 0x200,
    KEY_NO_ORACLES,
    KEY_TRUTH,
    KEY_WRITE_TRACE,
    KEY_SWEEP,
    KEY_QUIRKS,
    KEY_SMALLEST
};

typedef struct replay_arguments {
    cli_options common;
    const char *input;
    const char *truth;      /* "none": no side files */
    const char *trace_path; /* where the requests are written as .gmd */
    bool checks, oracles_off, finds_smallest_limit;
    uint32_t quirks; /* set of gmd_quirk_kinds */
    cli_sweep sweep;
} replay_arguments;

static const struct argp_option replay_options[] = {
    {"check", KEY_CHECK, NULL, 0, "the allocator must do exactly what was recorded", 1},
    {"truth", KEY_TRUTH, "FILE", 0,
     "with --check: the recorder's statistics (NAME.json); by default the file of that name beside "
     "the history, with NAME.ops.jsonl.gz; none: no such file",
     1},
    {"quirks", KEY_QUIRKS, "none|all|NAME,...", 0,
     "with --check: the recorded version's known deviations that the reference allocator keeps to; "
     "all if not given",
     1},
    {"sweep", KEY_SWEEP, "all|memory", OPTION_ARG_OPTIONAL,
     "each call that the allocator makes to the device, or each that takes memory, fails in a run "
     "of its own",
     1},
    {"smallest-limit", KEY_SMALLEST, NULL, 0,
     "bisect --limit for the smallest under which a history is served all that it was served", 1},
    {"no-oracles", KEY_NO_ORACLES, NULL, 0, "leave the oracles off", 1},
    {"write-trace", KEY_WRITE_TRACE, "FILE", 0, "also write the requests as a .gmd trace", 1},
    {0},
};

static void need_quirks(struct argp_state *state, const char *text, uint32_t *set)
{
    gmd_error error;
    if (gmd_quirks_parse(text, set, &error) != GMD_OK) {
        argp_error(state, "--quirks: %s", error.text);
    }
}

static void check_files(struct argp_state *state, const replay_arguments *a)
{
    gmd_error error = {""};
    cli_refuse_overwriting(state, &a->common, a->input);
    cli_refuse_overwriting(state, &a->common, a->truth);
    if (a->truth && !a->checks) {
        argp_error(state, "--truth %s: is for --check only", a->truth);
    }
    if (!a->trace_path) {
        return;
    }
    if (strcmp(a->trace_path, "-") == 0) {
        if (cli_stdout_reports(&a->common)) {
            argp_error(state, "only one report can go to standard output");
        }
        return;
    }
    cli_refuse_overwriting(state, &a->common, a->trace_path);
    if (cli_probe_file(a->trace_path, &error) != GMD_OK) {
        argp_error(state, "--write-trace %s", error.text);
    }
    if (cli_is_same_file(a->trace_path, a->input)) {
        argp_error(state, "--write-trace %s: is the same file as the history", a->trace_path);
    }
}

static void check_arguments(struct argp_state *state, const replay_arguments *a)
{
    if (!a->input) {
        argp_error(state, "expected a PyTorch memory snapshot or a .gmd trace");
        return;
    }
    if (a->sweep) {
        cli_refuse_views(state, &a->common);
    }
    if (a->sweep && (a->checks || a->oracles_off)) {
        argp_error(state, "--sweep goes with neither --check nor --no-oracles");
    }
    if (a->finds_smallest_limit && (a->checks || a->sweep)) {
        argp_error(state, "--smallest-limit goes with neither --check nor --sweep");
    }
    if (a->finds_smallest_limit && a->common.snapshot_path) {
        argp_error(state, "--snapshot holds one run, and --smallest-limit makes more");
    }
    check_files(state, a);
}

static error_t parse_replay(int key, char *text, struct argp_state *state)
{
    replay_arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        state->child_inputs[1] = &a->common.reading;
        a->quirks = GMD_QUIRKS_ALL;
        return 0;
    case KEY_CHECK:
        a->checks = true;
        return 0;
    case KEY_TRUTH:
        a->truth = text;
        return 0;
    case KEY_QUIRKS:
        need_quirks(state, text, &a->quirks);
        return 0;
    case KEY_SWEEP:
        if (!cli_sweep_parse(text, &a->sweep)) {
            argp_error(state, "--sweep=%s: expected all or memory", text);
        }
        return 0;
    case KEY_SMALLEST:
        a->finds_smallest_limit = true;
        return 0;
    case KEY_NO_ORACLES:
        a->oracles_off = true;
        return 0;
    case KEY_WRITE_TRACE:
        a->trace_path = text;
        return 0;
    case ARGP_KEY_ARG:
        if (a->input) {
            argp_error(state, "expected one history, found '%s' as well", text);
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

static const struct argp_child replay_children[] = {
    {&cli_common_argp, 0, NULL, 0}, {&cli_reading_argp, 0, NULL, 0}, {0}};

static const struct argp replay_argp = {
    .options = replay_options,
    .parser = parse_replay,
    .args_doc = "SNAPSHOT|TRACE",
    .doc =
        "Replays a recorded history (a PyTorch memory snapshot, .pickle or .pickle.gz) or a .gmd "
        "trace against an allocator, with the oracles on.",
    .children = replay_children,
};

/* --- the recorder's side files ----------------------------------------------------------- */

/* A file of that name beside a history need not be the recorder's: only --truth makes it a must. */
static gmd_status read_truth(const replay_arguments *a, gmd_truth *truth, gmd_error *error)
{
    if (!a->checks || (a->truth && strcmp(a->truth, "none") == 0)) {
        return GMD_OK;
    }
    if (a->truth) {
        return gmd_truth_read_json(a->truth, truth, error);
    }
    return gmd_truth_read_beside(a->input, truth, error);
}

static gmd_status run_and_show(cli_results *results, const gmd_run_options *options,
                               const gmd_workload *workload, gmd_error *error)
{
    gmd_status status = cli_run_workload(results, options, workload, error);
    if (status == GMD_OK || status == GMD_INTERRUPTED) {
        cli_results_done(results);
    }
    return status;
}

/* --- a snapshot -------------------------------------------------------------------------- */

typedef struct replay_body {
    const gmd_history *history;
    gmd_check_input *check; /* NULL: no --check */
    bool must_fit;          /* there is as much memory as the user said */
    bool is_limit_given;
} replay_body;

static gmd_status play_history(void *context, gmd_session *session, gmd_error *error)
{
    const replay_body *body = context;
    const gmd_history *h = body->history;
    char size[24];
    if (h->limit_inferred && h->limit_bytes && !body->is_limit_given) {
        gmd_session_note(session, "memory limit inferred from the history: %s",
                         gmd_format_size(h->limit_bytes, size));
    }
    if (h->limit_is_contradicted) {
        gmd_session_note(
            session,
            "requests were served above the memory limit, or refused below it: "
            "no one limit holds for all of the history (it or a setting was changed, or it was "
            "set for one device of several, or other processes had the "
            "device's memory)");
    }
    if (h->empty_cache_count) {
        gmd_session_note(session, "%" PRIu64 " empty_cache() calls inferred from freed segments",
                         h->empty_cache_count);
    }
    if (h->orphan_frees) {
        gmd_session_note(session, "%" PRIu64 " frees of blocks from before the recording left out",
                         h->orphan_frees);
    }
    if (h->waits_again && h->deferred_frees) {
        gmd_session_note(session,
                         "%" PRIu64 " frees waited for other streams: work on streams of the "
                         "replay's own makes them wait as long",
                         h->deferred_frees);
    }
    if (body->check) {
        return gmd_check_history(body->check, session, error);
    }
    gmd_history_replay replay = {.history = h, .must_fit = body->must_fit};
    return gmd_replay_history(&replay, session, error);
}

/* The limit is part of what was recorded; an allocator that has no such setting goes without. */
static void choose_limit(const replay_arguments *a, const gmd_history *history,
                         gmd_run_options *options)
{
    if (a->checks && options->conditions.limit_bytes && history->limit_bytes) {
        options->conditions.limit_bytes = history->limit_bytes; /* or a byte less */
    }
    if (!options->conditions.limit_bytes) {
        bool is_moot =
            a->common.has_capacity && history->limit_bytes > options->conditions.capacity_bytes;
        options->conditions.limit_bytes = is_moot ? 0 : history->limit_bytes;
        options->device.limit_is_optional = true;
    }
    if (options->device.kind == GMD_DEVICE_SIM && !a->common.has_capacity &&
        options->conditions.limit_bytes > options->conditions.capacity_bytes) {
        options->conditions.capacity_bytes =
            (options->conditions.limit_bytes + 2 * GMD_MIB) / GMD_GIB * GMD_GIB + GMD_GIB;
    }
}

static gmd_status sweep_history(const replay_arguments *a, const gmd_history *history,
                                const gmd_run_options *options, cli_results *results,
                                gmd_error *error)
{
    gmd_trace trace;
    gmd_status status = gmd_trace_copy(&trace, &history->trace, error);
    if (status == GMD_OK) {
        status = cli_sweep_run(results, options, "replay", a->input, &trace, a->sweep, error);
        gmd_trace_free(&trace);
    }
    return status;
}

static gmd_workload workload_of(const replay_arguments *a, replay_body *body)
{
    return (gmd_workload){.name = a->input,
                          .path = a->input,
                          .kind = "history",
                          .trace = &body->history->trace,
                          .recorded = body->history->recorded,
                          .body = play_history,
                          .context = body};
}

/* The outcome of a check with all quirks, which says where each mattered, for a check without some
 * of them. NULL: that has all, or the recording is not matched anyway. The caller frees it. */
static gmd_outcome *check_as_recorded(const replay_arguments *a, const gmd_run_options *options,
                                      const gmd_history *history, const gmd_check_input *input)
{
    bool is_reference = strcmp(a->common.run.subject.allocator, "reference") == 0;
    gmd_outcome *outcome = a->checks && is_reference && a->quirks != GMD_QUIRKS_ALL
                               ? calloc(1, sizeof *outcome)
                               : NULL;
    if (!outcome) {
        return NULL;
    }
    gmd_check_input check = *input;
    check.quirks = GMD_QUIRKS_ALL;
    replay_body body = {.history = history, .check = &check};
    const gmd_workload workload = workload_of(a, &body);
    const gmd_run_options unjudged = gmd_options_unjudged(options);
    gmd_error error = {""};
    if (gmd_run_isolated(&unjudged, &workload, outcome, &error) != GMD_OK ||
        !outcome->check.exact) {
        free(outcome);
        return NULL;
    }
    return outcome;
}

/* Everything is where the recording has it. */
static void place_as_recorded(const replay_arguments *a, const gmd_history *history,
                              const gmd_recorded_places *places, gmd_run_options *options)
{
    options->device.placement = GMD_SIM_RECORDED;
    options->device.recorded = places->segments;
    options->device.recorded_count = places->segment_count;
    options->device.recorded_reservations = places->reservations;
    options->device.recorded_reservation_count = places->reservation_count;
    if (places->most_memory && places->most_memory < options->conditions.capacity_bytes &&
        !a->common.has_capacity) {
        options->conditions.capacity_bytes = places->most_memory;
    }
    if (history->limit_inferred &&
        options->conditions.limit_bytes > options->conditions.capacity_bytes) {
        options->conditions.limit_bytes = 0; /* the device itself was full */
    }
}

static gmd_status replay_history(const replay_arguments *a, const gmd_snapshot *snapshot,
                                 const gmd_history *history, gmd_truth *truth, cli_results *results,
                                 gmd_error *error)
{
    gmd_run_options options = a->common.run;
    options.judging.oracles_off = a->oracles_off;
    options.judging.is_compared = a->checks;
    choose_limit(a, history, &options);
    gmd_recorded_places places;
    gmd_status status = gmd_recorded_places_make(&places, history, a->input, error);
    if (status != GMD_OK) {
        return status;
    }
    if (a->checks && !options.conditions.conf) {
        options.conditions.conf = snapshot->conf; /* "" where there were none */
    }
    gmd_check_input check = {
        .history = history, .snapshot = snapshot, .truth = truth, .quirks = a->quirks};
    bool is_limit_given = a->common.run.conditions.limit_bytes != 0;
    replay_body body = {.history = history,
                        .check = a->checks ? &check : NULL,
                        .must_fit =
                            is_limit_given || a->common.has_capacity || a->finds_smallest_limit,
                        .is_limit_given = is_limit_given};
    if (a->checks) {
        place_as_recorded(a, history, &places, &options);
    }
    if (history->trace.conditions.device_count && !a->common.has_devices) {
        options.conditions.device_count = history->trace.conditions.device_count;
    }
    const gmd_workload workload = workload_of(a, &body);
    gmd_outcome *recorded = check_as_recorded(a, &options, history, &check);
    check.as_recorded = recorded ? &recorded->check : NULL;
    status = a->sweep                  ? sweep_history(a, history, &options, results, error)
             : a->finds_smallest_limit ? cli_smallest_run(results, &options, &workload, error)
                                       : run_and_show(results, &options, &workload, error);
    free(recorded);
    gmd_recorded_places_free(&places);
    return status;
}

static gmd_status write_trace(const char *path, const gmd_trace *trace, gmd_error *error)
{
    gmd_output out;
    gmd_status status = gmd_output_open(&out, path, error);
    if (status == GMD_OK) {
        status = gmd_trace_write(trace, out.stream, error);
        status = gmd_output_close(&out, status, error);
    }
    return status;
}

/* What the command read of a recorded job. */
typedef struct recording {
    gmd_snapshot snapshot;
    gmd_history history;
    gmd_truth truth;
} recording;

static void free_recording(recording *r)
{
    gmd_truth_free(&r->truth);
    gmd_history_free(&r->history);
    gmd_snapshot_free(&r->snapshot);
}

/* Without --check the limit is a question, and need not be the recorded job's. */
static gmd_history_hints hints_of(const replay_arguments *a, const gmd_truth *truth)
{
    gmd_history_hints hints = {.limit_bytes = a->checks ? a->common.run.conditions.limit_bytes : 0,
                               .recorded_retries = GMD_RETRIES_UNKNOWN,
                               .frees_refused = !a->checks,
                               .ops = truth->ops,
                               .op_count = truth->op_count,
                               .waits_again =
                                   a->checks && a->common.run.device.kind == GMD_DEVICE_SIM};
    gmd_truth_stat(truth, "num_alloc_retries", &hints.recorded_retries);
    if (!hints.limit_bytes) {
        hints.limit_bytes = truth->cap_bytes ? truth->cap_bytes : truth->ops_cap_bytes;
    }
    return hints;
}

static gmd_status read_recording(const replay_arguments *a, recording *r, gmd_error *error)
{
    gmd_status status = gmd_snapshot_read(&r->snapshot, a->input, error);
    if (status == GMD_OK) {
        status = read_truth(a, &r->truth, error);
    }
    if (status == GMD_OK) {
        const gmd_history_hints hints = hints_of(a, &r->truth);
        status = gmd_history_build(&r->history, &r->snapshot, &hints, a->input, error);
        GMD_ASSERT_VALID(status == GMD_OK ? gmd_trace_violation(&r->history.trace) : NULL);
    }
    if (status == GMD_OK && a->checks) {
        status = gmd_check_possible(&r->history, &r->snapshot, a->input, error);
    }
    if (status == GMD_OK && !r->history.trace.count) {
        status = gmd_fail(error, GMD_BAD_INPUT,
                          "%s: holds no history%s: there is nothing to replay", a->input,
                          r->snapshot.recorder == GMD_RECORDER_PYTORCH
                              ? " (torch.cuda.memory._record_memory_history was off)"
                              : "");
    }
    return status;
}

static gmd_status replay_snapshot(const replay_arguments *a, cli_results *results, gmd_error *error)
{
    recording r = {0};
    cli_read read;
    cli_read_begin(&read, &a->common.reading, a->input);
    gmd_status status = cli_read_end(&read, read_recording(a, &r, error), error);
    if (status == GMD_OK && a->trace_path) {
        status = write_trace(a->trace_path, &r.history.trace, error);
    }
    if (status == GMD_OK) {
        status = replay_history(a, &r.snapshot, &r.history, &r.truth, results, error);
    }
    if (status == GMD_OK || status == GMD_INTERRUPTED) {
        cli_results_recorded(results, &r.snapshot);
    }
    free_recording(&r);
    return status;
}

/* --- a trace ----------------------------------------------------------------------------- */

static gmd_status replay_trace(const replay_arguments *a, cli_results *results, gmd_error *error)
{
    if (a->checks) {
        return gmd_fail(
            error, GMD_BAD_INPUT,
            "%s: --check: a .gmd trace holds requests and no recorded answers; it needs a "
            "PyTorch memory snapshot",
            a->input);
    }
    if (a->finds_smallest_limit) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--smallest-limit needs a PyTorch memory snapshot, and %s is a trace",
                        a->input);
    }
    gmd_trace trace = {0};
    gmd_run_options options = a->common.run;
    options.judging.oracles_off = a->oracles_off;
    gmd_status status = cli_read_trace(&trace, a->input, &a->common, &options, error);
    if (status == GMD_OK && a->trace_path) {
        status = write_trace(a->trace_path, &trace, error);
    }
    if (status == GMD_OK && a->sweep) {
        status = cli_sweep_run(results, &options, "replay", a->input, &trace, a->sweep, error);
    } else if (status == GMD_OK) {
        gmd_workload workload = {.name = a->input,
                                 .path = a->input,
                                 .kind = "trace",
                                 .trace = &trace,
                                 .body = gmd_play_trace};
        status = run_and_show(results, &options, &workload, error);
    }
    gmd_trace_free(&trace);
    return status;
}

static bool is_trace_name(const char *path)
{
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".gmd") == 0;
}

static gmd_status replay(replay_arguments *a, cli_results *results, gmd_error *error)
{
    bool keeps_quirks = a->checks && strcmp(a->common.run.subject.allocator, "reference") == 0;
    gmd_status status = gmd_quirks_mask(&a->common.known, keeps_quirks ? a->quirks : 0, error);
    if (status != GMD_OK) {
        return status;
    }
    return is_trace_name(a->input) ? replay_trace(a, results, error)
                                   : replay_snapshot(a, results, error);
}

/* What fails before a run is an outcome of its own. */
static void replay_or_tell(replay_arguments *a, cli_results *results)
{
    gmd_error error = {""};
    gmd_status status = replay(a, results, &error);
    cli_results_end(results, a->input, status, &error);
}

void cli_replay_input(const cli_options *options, const char *input, cli_results *results)
{
    replay_arguments a = {.common = *options, .input = input};
    replay_or_tell(&a, results);
}

int cli_replay(int argc, char **argv)
{
    replay_arguments a = {0};
    cli_options_init(&a.common);
    int usage = cli_parse(&replay_argp, argc, argv, &a);
    if (usage != CLI_EXIT_OK) {
        return usage;
    }
    bool gives_trace = a.trace_path && strcmp(a.trace_path, "-") == 0;
    a.common.quiet = a.common.quiet || gives_trace; /* nothing else goes there then */
    cli_results results;
    gmd_known_count_fn *quirk_count = NULL;
    a.common.known.quirk_count = &quirk_count;
    a.common.run.process.is_interrupted = cli_interruption_awaited();
    cli_results_open(&results, &a.common, "replay");
    replay_or_tell(&a, &results);
    int exit_status = cli_results_report(&results);
    cli_results_free(&results);
    cli_options_free(&a.common);
    return exit_status;
}
