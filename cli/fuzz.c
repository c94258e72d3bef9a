/* fuzz.c - gmd fuzz: a campaign that looks for defects of an allocator. */
#include "commands.h"
#include "course.h"
#include "found.h"
#include "fuzz_exhaustive.h"
#include "inputs.h"
#include "interruption.h"
#include "progress.h"
#include "rerun.h"
#include "results.h"
#include "search_outcome.h"
#include "writable.h"

#include "gmd_clock.h"
#include "gmd_jobs.h"
#include "gmd_size.h"
#include "gmd_status_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
    KEY_TIME = 0x300,
    KEY_RUNS,
    KEY_JOBS,
    KEY_OUT,
    KEY_WITHOUT,
    KEY_CORPUS,
    KEY_UNGUIDED,
    KEY_RANDOM,
    KEY_FAIL_FAST,
    KEY_EXHAUSTIVE
};

#define DEFAULT_SECONDS  60
#define MINIMIZE_SECONDS 60
#define HANG_SECONDS     0.5 /* of a request, while a hang is minimised */
#define CONF_MAX         16
#define SEARCH_LEAST     1.0 /* seconds */

typedef struct fuzz_arguments {
    cli_options common;
    double seconds;
    uint64_t runs;
    unsigned jobs;
    bool is_unguided, is_random, is_fail_fast;
    const char *without, *corpus;
    cli_exhaustive_scope exhaustive; /* of depth 0: a campaign */
} fuzz_arguments;

static const struct argp_option fuzz_options[] = {
    {"time", KEY_TIME, "DURATION", 0, "how long: 90s, 10m, 8h (60s, where --runs is not given)", 1},
    {"runs", KEY_RUNS, "N", 0, "how many sequences", 1},
    {"jobs", KEY_JOBS, "N", 0, "processes that search together (1)", 1},
    {"corpus", KEY_CORPUS, "DIR", 0,
     "inputs to go on from, .gmd files or bytes; what brings the allocator into a new state is "
     "added",
     1},
    {"unguided", KEY_UNGUIDED, NULL, 0, "each sequence is drawn anew: no corpus", 1},
    {"random-bytes", KEY_RANDOM, NULL, 0,
     "each sequence is made of random bytes: what the others are to be compared with", 1},
    {"fail-fast", KEY_FAIL_FAST, NULL, 0, "end with the first finding", 1},
    {"without", KEY_WITHOUT, "NAMES", 0,
     "what no sequence has: fault, budget, fraction, record, wait, sync, empty_cache, destroy, "
     "pools, captures, checkpoints, pool_options, "
     "threads, devices, settings, huge (sizes near 2^64), counts (many of one kind)",
     1},
    {"exhaustive", KEY_EXHAUSTIVE, "DEPTH", 0,
     "instead all sequences of up to so many requests, 1 to 8, over a small alphabet", 1},
    {"out", KEY_OUT, "DIR", 0, "where the minimised cases are written (gmd-cases); none: nowhere",
     1},
    {0},
};

/* Only private pools and captures can be left out of the exhaustive mode's alphabet. */
static bool choose_alphabet(fuzz_arguments *a)
{
    uint32_t alphabet = 0;
    char unknown[32];
    gmd_profile_space space = {.has_pools = true, .has_captures = true};
    gmd_profile_leave_out(&space, a->without ? a->without : "", unknown);
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        alphabet |= (uint32_t)gmd_op_is(op, GMD_IS_IN_ALPHABET) << op;
    }
    a->exhaustive.with_pools = space.has_pools;
    a->exhaustive.with_captures = space.has_captures;
    return !(space.without_ops & alphabet);
}

static void check_options(struct argp_state *state, fuzz_arguments *a)
{
    gmd_error error = {""};
    if (!choose_alphabet(a) && a->exhaustive.depth) {
        argp_error(state,
                   "--without %s: of the alphabet of --exhaustive only pools and captures can be "
                   "left out",
                   a->without);
    }
    cli_refuse_views(state, &a->common);
    if (a->common.run.cases.directory &&
        cli_probe_folder(a->common.run.cases.directory, &error) != GMD_OK) {
        argp_error(state, "--out %s", error.text);
    }
    if (a->corpus && cli_probe_folder(a->corpus, &error) != GMD_OK) {
        argp_error(state, "--corpus %s", error.text);
    }
    if (a->is_unguided && (a->corpus || a->jobs > 1)) {
        argp_error(state,
                   "--unguided, --random-bytes: there is no corpus then, nor anything that several "
                   "processes could share (--corpus, --jobs)");
    }
}

static error_t parse_fuzz(int key, char *text, struct argp_state *state)
{
    fuzz_arguments *a = state->input;
    uint64_t jobs;
    char unknown[32];
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case KEY_TIME:
        if (!cli_parse_time(text, &a->seconds)) {
            argp_error(state, "--time %s: expected a time over 0 such as 90s, 10m or 8h", text);
        }
        return 0;
    case KEY_RUNS:
        if (!gmd_parse_u64(text, &a->runs) || !a->runs) {
            argp_error(state, "--runs %s: expected a whole number from 1", text);
        }
        return 0;
    case KEY_JOBS:
        if (!gmd_parse_u64(text, &jobs) || jobs < 1 || jobs > GMD_JOBS_MAX) {
            argp_error(state, "--jobs %s: expected a whole number from 1 to %d", text,
                       GMD_JOBS_MAX);
        }
        a->jobs = (unsigned)jobs;
        return 0;
    case KEY_CORPUS:
        a->corpus = text;
        return 0;
    case KEY_UNGUIDED:
        a->is_unguided = true;
        return 0;
    case KEY_RANDOM:
        a->is_random = a->is_unguided = true;
        return 0;
    case KEY_FAIL_FAST:
        a->is_fail_fast = true;
        return 0;
    case KEY_WITHOUT:
        if (!gmd_profile_leave_out(&(gmd_profile_space){0}, text, unknown)) {
            argp_error(state, "--without %s: '%s' is none of %s", text, unknown,
                       gmd_profile_left_out_names);
        }
        a->without = text;
        return 0;
    case KEY_EXHAUSTIVE:
        if (!cli_parse_depth(text, &a->exhaustive.depth)) {
            argp_error(state, "--exhaustive %s: expected a number of requests from 1 to 8", text);
        }
        return 0;
    case KEY_OUT:
        a->common.run.cases.directory = strcmp(text, "none") == 0 ? NULL : text;
        return 0;
    case ARGP_KEY_ARG:
        cli_refuse_argument(state, text);
        return 0;
    case ARGP_KEY_END:
        check_options(state, a);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child fuzz_children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};

static const struct argp fuzz_argp = {
    .options = fuzz_options,
    .parser = parse_fuzz,
    .doc =
        "Looks for defects of an allocator: sequences of requests and, on the simulated device, of "
        "faults, all oracles on. It goes on from those that brought the allocator into new "
        "states. Each defect is reported once, with a minimised case."
        "\v--capacity, --limit, --conf, --devices and --schedule fix what is otherwise drawn at "
        "random; --devices N: up to N. The same seed makes the same campaign.",
    .children = fuzz_children,
};

/* --- progress ---------------------------------------------------------------------------- */

typedef struct progress {
    gmd_status_line line;
    bool is_shown;
    cli_course course;
    double seconds, runs; /* where the campaign ends; 0: not by these */
} progress;

/* Until the end by time or by runs, whichever comes first. */
static const char *time_left(const progress *p, const gmd_search_status *s, char *text)
{
    double runs = (double)s->runs;
    bool is_by_runs =
        p->runs > 0 && (!(p->seconds > 0) || runs / p->runs > s->seconds / p->seconds);
    return is_by_runs ? cli_time_left(runs, p->runs, s->seconds, text)
                      : cli_time_left(s->seconds, p->seconds, s->seconds, text);
}

static void note_status(void *context, const gmd_search_status *s)
{
    progress *p = context;
    char left[CLI_LEFT_BYTES], doing[48];
    cli_course_note(&p->course, s);
    if (!p->is_shown) {
        return;
    }
    if (strcmp(s->doing, "done") == 0) {
        gmd_status_clear(&p->line);
        return;
    }
    bool is_minimising = strcmp(s->doing, "minimising") == 0;
    snprintf(doing, sizeof doing, is_minimising ? "%.20s %zu requests" : "%.20s", s->doing,
             s->case_requests);
    double seconds = s->seconds > 0 ? s->seconds : 1;
    time_left(p, s, left);
    gmd_status_show(&p->line, s->seconds,
                    "%s%s%zu found, %s, %" PRIu64 " inputs (%.0f/s), %" PRIu32 " features",
                    left + (*left ? 2 : 0), *left ? ", " : "", s->findings, doing, s->runs,
                    (double)s->runs / seconds, s->features);
}

/* --- the campaign ------------------------------------------------------------------------ */

static void choose_space(const fuzz_arguments *a, gmd_profile_space *space)
{
    const cli_options *c = &a->common;
    static const char *fixed[1];
    space->device_max = c->has_devices ? c->run.conditions.device_count : 2;
    space->many_device_max = c->has_devices ? c->run.conditions.device_count : GMD_MAX_DEVICES;
    space->capacity_bytes =
        c->has_capacity || c->run.conditions.limit_bytes ? c->run.conditions.capacity_bytes : 0;
    bool is_real = c->run.device.kind != GMD_DEVICE_SIM;
    if (c->run.conditions.limit_bytes &&
        is_real) { /* a real device has the memory that it has: less is a limit */
        space->capacity_bytes = c->run.conditions.limit_bytes;
    } else if (c->run.conditions.limit_bytes) {
        space->fraction =
            (double)c->run.conditions.limit_bytes / (double)c->run.conditions.capacity_bytes;
    }
    space->schedule =
        gmd_schedule_is_stated(&c->run.conditions.schedule) ? &c->run.conditions.schedule : NULL;
    space->confs = gmd_profile_confs;
    space->conf_count = gmd_profile_conf_count;
    if (c->run.conditions.conf) {
        fixed[0] = c->run.conditions.conf;
        space->confs = fixed;
        space->conf_count = 1;
        space->conf_is_fixed = true;
    }
}

static void note_figures(gmd_outcome *o, const gmd_search_result *result)
{
    snprintf(o->notes[o->note_count++], sizeof o->notes[0],
             "%" PRIu64 " sequence%s in %" PRIu64 " round%s", result->status.runs,
             result->status.runs == 1 ? "" : "s", result->status.rounds,
             result->status.rounds == 1 ? "" : "s");
    gmd_outcome_note_known(o);
    if (result->status.features) {
        snprintf(
            o->notes[o->note_count++], sizeof o->notes[0],
            "%" PRIu32 " feature%s of the allocator's state, %zu input%s in the corpus; the last "
            "new one came %.0f s before the end",
            result->status.features, result->status.features == 1 ? "" : "s", result->status.inputs,
            result->status.inputs == 1 ? "" : "s", result->status.fresh_seconds);
    }
    if (result->unreadable) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%zu files of the corpus are no inputs, first: %.180s", result->unreadable,
                 result->unreadable_first);
    }
    if (result->unwritten) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%zu inputs could not be added to the corpus's folder, first: %s",
                 result->unwritten, result->unwritten_first);
    }
    if (result->refused) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%" PRIu64 " rounds were refused: %.180s", result->refused, result->refusal);
    }
    if (result->faults_planted) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "planted faults: %" PRIu64 ", of them never fired: %" PRIu64,
                 result->faults_planted, result->faults_unfired);
    }
    gmd_outcome_note_troubles(o, result->troubles.restarts, result->troubles.left_behind);
    if (result->replaced) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%u process%s of the campaign, ended by SIGKILL, %s replaced", result->replaced,
                 result->replaced == 1 ? "" : "es", result->replaced == 1 ? "was" : "were");
    }
    if (result->cut_off) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%" PRIu64 " sequences had not ended when the time was over: they are not judged",
                 result->cut_off);
    }
    if (result->spins_since) {
        snprintf(
            o->notes[o->note_count++], sizeof o->notes[0],
            "the allocator's threads spin or block outside the scheduler's control: from sequence "
            "%" PRIu64 " on few are interleaved (%" PRIu64 " turns lost in %" PRIu64
            " interleaved sequences)",
            result->spins_since, result->lapses, result->interleaved);
    }
    if (result->unconfirmed) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%" PRIu64 " sequences showed something only after others in one process, first: "
                 "%s: %.120s",
                 result->unconfirmed, result->unconfirmed_first.oracle,
                 result->unconfirmed_first.message);
    }
}

static void note_findings(gmd_outcome *o, const gmd_findings *findings)
{
    for (size_t i = 0; i < findings->count && o->note_count < GMD_NOTE_MAX; i++) {
        const gmd_finding *f = &findings->items[i];
        bool is_smallest = !f->unfinished[0];
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%s, first in sequence %" PRIu64 " after %.3f s and %" PRIu64
                 " time%s in all: %zu request%s, %s%s%.2f s%s",
                 f->violation.oracle, f->run, f->seconds, f->hits, f->hits == 1 ? "" : "s",
                 f->requests, f->requests == 1 ? "" : "s",
                 is_smallest ? "minimised" : f->unfinished, is_smallest ? " in " : " (",
                 f->minimize_seconds, is_smallest ? "" : ")");
    }
}

/* `status`: of the campaign. Whatever ended it, what it found until then is there. */
static void add_outcome(cli_results *results, const fuzz_arguments *a, const gmd_findings *findings,
                        const gmd_search_result *result, gmd_status status, const gmd_error *error)
{
    gmd_outcome *o = cli_results_add(results, "campaign", "fuzz");
    if (!o) {
        return;
    }
    o->requests = result->status.requests;
    o->seconds = result->status.seconds;
    o->seed = a->common.run.seed;
    o->known_count = result->status.known;
    note_figures(o, result);
    cli_add_findings(o, findings, &result->judged);
    cli_keep_found(results, findings);
    cli_end_search(o, result->is_interrupted ? GMD_INTERRUPTED : status, error);
    note_findings(o, findings);
}

/* What the processes of a campaign share of what they learn. */
static gmd_feature_map *open_features(gmd_error *error)
{
    gmd_feature_map *map =
        mmap(NULL, sizeof *map, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        gmd_fail(error, GMD_NO_MEMORY, "no memory to share with other processes");
        return NULL;
    }
    return map;
}

static void note_coverage(cli_results *results, const gmd_feature_map *map)
{
    static const char *const names[] = {
        [GMD_FEATURE_CALLS] = "Device calls of a request, and how they ended",
        [GMD_FEATURE_CALL_PAIRS] = "Device calls of two requests, one after the other",
        [GMD_FEATURE_FULLNESS] = "How full: cached, split, segments, live blocks",
        [GMD_FEATURE_PENDING] = "Freed blocks that wait for streams",
        [GMD_FEATURE_PLACES] = "Places of a block among those freed before",
        [GMD_FEATURE_USES] = "Streams that used and recorded a freed block",
        [GMD_FEATURE_REFUSALS] = "Retries and refusals",
        [GMD_FEATURE_JUDGED] = "Situations that oracles had to judge",
    };
    for (int i = 0; i < GMD_FEATURE_KIND_COUNT; i++) {
        cli_results_cover(results, names[i], atomic_load(&map->of_kind[i]));
    }
}

static gmd_status search(const fuzz_arguments *a, gmd_search_options *options,
                         gmd_findings *findings, gmd_search_result *result, gmd_error *error)
{
    const char *taken[CONF_MAX];
    double start = gmd_clock_s();
    gmd_status status = gmd_search_find_space(&options->space, options->run, error);
    if (status != GMD_OK) {
        return status;
    }
    if (!options->space.conf_is_fixed) {
        options->space.confs = taken;
        status = gmd_search_taken_confs(options->run, taken, CONF_MAX, &options->space.conf_count,
                                        error);
    }
    if (status != GMD_OK) {
        return status;
    }
    char unknown[32], forbidden[GMD_CONTRACT_WITHOUT];
    gmd_profile_leave_out(&options->space, a->without ? a->without : "", unknown);
    if (options->run->judging.contract) { /* what would not be made need not be drawn */
        gmd_profile_leave_out(&options->space,
                              gmd_contract_without(options->run->judging.contract, forbidden),
                              unknown);
    }
    double left = options->seconds - (gmd_clock_s() - start); /* it may have hung already */
    if (options->seconds > 0) {
        options->seconds = left > SEARCH_LEAST ? left : SEARCH_LEAST;
    }
    return a->jobs > 1 ? gmd_search_jobs(options, a->jobs, findings, result, error)
                       : gmd_search(options, findings, result, error);
}

static gmd_status run_campaign(fuzz_arguments *a, progress *shown, cli_results *results,
                               gmd_error *error)
{
    char origin[128];
    gmd_run_options run = a->common.run;
    run.judging.costs = GMD_COSTS_SAMPLED;
    gmd_options_leave_to_traces(&run);
    shown->runs = (double)a->runs;
    shown->is_shown = run.process.shows_progress;
    cli_found found = {.options = &a->common, .command = "fuzz", .start = gmd_clock_s()};
    gmd_corpus corpus = {.folder = a->corpus};
    gmd_search_options options = {.run = &run,
                                  .seed = run.seed,
                                  .seconds = a->seconds,
                                  .runs = a->runs,
                                  .ends_when_found = a->is_fail_fast,
                                  .is_random = a->is_random,
                                  .corpus = a->is_unguided ? NULL : &corpus,
                                  .is_interrupted = run.process.is_interrupted,
                                  .progress = note_status,
                                  .context = shown};
    if (!a->runs && !(a->seconds > 0)) {
        options.seconds = DEFAULT_SECONDS;
    }
    run = gmd_search_hurried(&run, options.seconds);
    cli_keep_budget(results, run.process.call_budget_s);
    shown->seconds = options.seconds;
    choose_space(a, &options.space);
    snprintf(origin, sizeof origin, "found by: gmd fuzz --seed %" PRIu64, run.seed);
    gmd_findings findings = {.out_directory = run.cases.directory,
                             .origin = origin,
                             .allocator = run.subject.allocator,
                             .minimize_seconds = MINIMIZE_SECONDS,
                             .hang_seconds = HANG_SECONDS,
                             .tell = cli_tell_found,
                             .listener = &found};
    gmd_search_result result = {.status = {.doing = ""}};
    gmd_feature_map *map = open_features(error);
    run.recording.features = a->is_unguided ? NULL : map;
    gmd_status status = map ? search(a, &options, &findings, &result, error) : GMD_NO_MEMORY;
    gmd_status_clear(&shown->line);
    bool has_begun = result.status.runs || findings.count;
    if (status == GMD_OK || status == GMD_INTERRUPTED || has_begun) {
        add_outcome(results, a, &findings, &result, status, error);
        cli_course_end(&shown->course, &result.status);
        results->course = shown->course.moments;
        results->course_length = shown->course.count;
        if (run.recording.features) {
            note_coverage(results, map);
        }
        status = GMD_OK;
    }
    gmd_findings_free(&findings);
    gmd_corpus_free(&corpus);
    if (map) {
        munmap(map, sizeof *map);
    }
    return status;
}

int cli_fuzz(int argc, char **argv)
{
    fuzz_arguments a = {0};
    cli_options_init(&a.common);
    int usage = cli_parse(&fuzz_argp, argc, argv, &a);
    if (usage != CLI_EXIT_OK) {
        return usage;
    }
    a.common.run.process.is_interrupted = cli_interruption_awaited();
    cli_results results;
    progress shown = {.seconds = 0};
    cli_results_open(&results, &a.common, "fuzz");
    gmd_error error = {""};
    a.exhaustive.seconds = a.seconds;
    gmd_status status = a.exhaustive.depth ? cli_exhaustive(&a.common, &a.exhaustive, &shown.course,
                                                            &results, &error)
                                           : run_campaign(&a, &shown, &results, &error);
    if (status != GMD_OK) {
        cli_results_add_error(&results, "campaign", "fuzz", status, &error);
    }
    char replay_options[1400];
    cli_word_subject(&a.common, replay_options, sizeof replay_options);
    results.replay_options = replay_options;
    cli_rerun rerun = {.count = 0};
    cli_rerun_findings(&rerun, &results);
    int exit_status = cli_results_report(&results);
    cli_rerun_free(&rerun);
    cli_results_free(&results);
    cli_options_free(&a.common);
    return exit_status;
}
