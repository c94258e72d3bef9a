#include "search.h"

#include "fault_sweep.h"
#include "fault_targets.h"
#include "guide.h"
#include "space.h"

#include "gmd_clock.h"
#include "gmd_size.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH           32
#define INTERLEAVED_MAX 16 /* sequences of a round: each takes as long as fifty others */
#define THREADED_MAX    32 /* likewise, ten */
#define SWEEPS_A_ROUND  2
#define SWEEP_RUNS      200
#define SWEEP_REQUESTS  30
#define PROGRESS_RUNS   16
#define GUIDED_ROUNDS   1  /* of three, once there is a corpus */
#define GUIDED_RUNS     96 /* sequences of such a round */
#define RANDOM_RUNS     64
#define READ_SECONDS    5 /* between looks at what other processes have put into the corpus */

/* --- what can be asked for --------------------------------------------------------------- */

/* Runs a few lines; true: they can be carried out. */
static bool can_run(gmd_runner *runner, const char *text)
{
    gmd_trace trace;
    gmd_error error;
    const gmd_outcome *outcome;
    if (gmd_trace_parse(&trace, text, strlen(text), "probe", &error) != GMD_OK) {
        return false;
    }
    bool can =
        gmd_runner_run(runner, &trace, &outcome, &error) == GMD_OK && outcome->verdict != GMD_ERROR;
    gmd_trace_free(&trace);
    return can;
}

static gmd_status run_plain(gmd_runner *runner, bool *has_pools, gmd_error *error)
{
    gmd_trace trace;
    const gmd_outcome *outcome;
    gmd_trace_init(&trace);
    gmd_status status = gmd_runner_run(runner, &trace, &outcome, error);
    if (status == GMD_OK && outcome->verdict == GMD_ERROR) {
        status = gmd_fail(error, (gmd_status)outcome->error_status, "%s", outcome->error);
    }
    *has_pools = status == GMD_OK && outcome->has_pools;
    gmd_trace_free(&trace);
    return status;
}

/* A real machine has as many as it has. */
static uint32_t count_devices(gmd_runner *runner, uint32_t most)
{
    uint32_t count = 1;
    char text[80];
    for (bool is_there = true; is_there && count < most; count += is_there) {
        snprintf(text, sizeof text, "gmd-trace 1\nalloc a 1 s1 device %" PRIu32 "\n", count);
        is_there = can_run(runner, text);
    }
    return count;
}

gmd_status gmd_search_find_space(gmd_profile_space *space, const gmd_run_options *run,
                                 gmd_error *error)
{
    gmd_runner runner;
    gmd_runner_init(&runner, run);
    gmd_status status = run_plain(&runner, &space->has_pools, error);
    if (status == GMD_OK && run->device != GMD_DEVICE_SIM) {
        space->device_max = count_devices(&runner, space->device_max);
    }
    if (status == GMD_OK) {
        space->has_fraction = true;
        space->has_record_stream = true;
        space->has_faults = can_run(&runner, "gmd-trace 1\nfault cudaMalloc 1 2\n");
        space->has_budgets = can_run(&runner, "gmd-trace 1\nbudget 1GiB\nbudget none\n");
        space->has_seeded_schedules =
            run->device == GMD_DEVICE_SIM &&
            can_run(&runner, "gmd-trace 1\nschedule seed 1\nempty_cache\n");
        space->has_interleaving =
            run->device == GMD_DEVICE_SIM &&
            can_run(&runner, "gmd-trace 1\ninterleave seed 1\nalloc a 1 s1\nthread t1\nfree a\n");
    }
    if (status == GMD_OK && space->has_faults) {
        status = gmd_fault_targets_find(space, &runner, error);
    }
    gmd_runner_close(&runner);
    return status;
}

size_t gmd_search_taken_confs(const gmd_run_options *run, const char **taken, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < gmd_profile_conf_count && count < max; i++) {
        gmd_run_options with = *run;
        gmd_nursery *nursery = NULL;
        gmd_error error;
        with.conf = gmd_profile_confs[i];
        if (gmd_nursery_open(&nursery, &with, &error) == GMD_OK) {
            taken[count++] = gmd_profile_confs[i];
        }
        gmd_nursery_close(nursery);
    }
    return count;
}

/* --- the campaign ------------------------------------------------------------------------ */

typedef struct campaign {
    const gmd_search_options *options;
    gmd_findings *findings;
    gmd_search_result *result;
    gmd_runner runner;
    double start, last_fresh, last_read;
    uint64_t sequences; /* without the minimiser's tries */
    gmd_status status;
    gmd_error *error;
} campaign;

static void tell(campaign *c, const char *doing)
{
    gmd_search_status *s = &c->result->status;
    s->runs = c->sequences;
    s->requests = c->runner.requests;
    s->seconds = gmd_clock_s() - c->start;
    s->findings = c->findings->count;
    s->inputs = c->options->corpus ? c->options->corpus->count : 0;
    s->features = c->options->run->features ? atomic_load(&c->options->run->features->count) : 0;
    s->fresh_seconds = gmd_clock_s() - c->last_fresh;
    s->doing = doing;
    if (c->options->progress) {
        c->options->progress(c->options->context, s);
    }
}

static void tell_minimising(void *context, size_t requests, uint64_t tries)
{
    campaign *c = context;
    c->result->status.case_requests = requests;
    if (tries % PROGRESS_RUNS == 0) {
        tell(c, "minimising");
    }
}

static bool is_over(const campaign *c)
{
    const gmd_search_options *o = c->options;
    return c->status != GMD_OK || (o->is_interrupted && *o->is_interrupted) ||
           (o->ends_when_found && c->findings->count) || (o->runs && c->sequences >= o->runs) ||
           (o->seconds > 0 && gmd_clock_s() - c->start >= o->seconds);
}

static void note_refusal(campaign *c, const char *reason)
{
    if (!c->result->refused++) {
        snprintf(c->result->refusal, sizeof c->result->refusal, "%s", reason);
    }
}

/* What a run that ended badly, by itself, tells. False: the round is not worth going on with. */
static bool take_outcome(campaign *c, const gmd_trace *trace, const gmd_outcome *outcome,
                         const gmd_violation *suspicion)
{
    if (outcome->violation_count) {
        gmd_violation violation = outcome->violations[0]; /* the next run overwrites it */
        c->status = gmd_findings_add(c->findings, &c->runner, trace, &violation, c->sequences,
                                     gmd_clock_s() - c->start, c->error);
        return c->status == GMD_OK;
    }
    if (outcome->verdict == GMD_ERROR) {
        note_refusal(c, outcome->error);
        return false;
    }
    if (!c->result->unconfirmed++) {
        c->result->unconfirmed_first = *suspicion;
    }
    return true;
}

/* A sequence that was suspected counts for what it shows by itself. */
static bool run_sequence(campaign *c, const gmd_trace *trace, const gmd_violation *suspicion)
{
    const gmd_outcome *outcome;
    gmd_error error;
    gmd_status status = gmd_runner_run(&c->runner, trace, &outcome, &error);
    if (status == GMD_BAD_INPUT) {
        note_refusal(c, error.text);
        return false;
    }
    if (status != GMD_OK) {
        c->status = gmd_fail(c->error, status, "%s", error.text);
        return false;
    }
    return take_outcome(c, trace, outcome, suspicion);
}

static bool generate(campaign *c, const gmd_profile *profile, uint64_t seed, gmd_trace *trace)
{
    gmd_trace_init(trace);
    c->status = gmd_generate(profile, &c->options->space, seed, trace, c->error);
    return c->status == GMD_OK;
}

/* --- threads that spin ------------------------------------------------------------------- */

/* Each turn that a thread loses to the watchdog takes as long as a thousand requests. From then on
 * one round in some interleaves one sequence: a livelock is still found. */
#define SPINNING_SEQUENCES UINT64_C(4)
#define SPINNING_LAPSES    UINT64_C(2) /* in each, on average */
#define SPINNING_SPACING   4

static void note_lapses(campaign *c, const gmd_profile *profile, const gmd_scouted *scouted)
{
    gmd_search_result *r = c->result;
    if (!profile->interleaves) {
        return;
    }
    r->interleaved += scouted->passed;
    r->lapses += scouted->lapses;
    if (!r->spins_since && r->lapses >= SPINNING_SEQUENCES * SPINNING_LAPSES &&
        r->lapses >= r->interleaved * SPINNING_LAPSES) {
        r->spins_since = c->sequences;
    }
}

/* --- batches ----------------------------------------------------------------------------- */

typedef struct batch {
    gmd_scout_trace traces[BATCH];
    size_t count, known;
} batch;

/* Where the sequences of a round come from. */
typedef struct source {
    const gmd_profile *profile; /* each is drawn by it */
    gmd_guide *guide;           /* or made of the corpus; NULL: not */
    uint64_t seed;
} source;

static void free_batch(batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        gmd_trace_free(&b->traces[i].trace);
    }
    b->count = 0;
}

/* The questions after a refusal end a sequence: after which one is drawn, the first ones more often
 * than the later ones, and for some it is none. */
static uint64_t choose_refusal(uint64_t seed)
{
    gmd_random r = {seed};
    return gmd_random_chance(&r, 30) ? 0 : 1 + gmd_random_below(&r, 1 + gmd_random_below(&r, 12));
}

static bool make_sequence(campaign *c, const source *from, uint64_t seed, gmd_trace *trace)
{
    if (!from->guide) {
        return generate(c, from->profile, seed, trace);
    }
    c->status = gmd_guide_make(from->guide, trace, c->error);
    return c->status == GMD_OK;
}

static bool make_batch(campaign *c, const source *from, uint64_t first, size_t count, batch *b)
{
    b->count = 0;
    while (b->count < count) {
        uint64_t own = gmd_random_derive(from->seed, first + b->count);
        gmd_scout_trace *t = &b->traces[b->count++];
        t->probed_refusal = choose_refusal(~own);
        t->expects_lapses = c->result->spins_since != 0;
        if (!make_sequence(c, from, own, &t->trace)) {
            return false;
        }
    }
    return true;
}

/* What brought the allocator into a new state is worth going on from. */
static void take_fresh(campaign *c, const batch *b, size_t first, const gmd_scouted *scouted)
{
    gmd_corpus *corpus = c->options->corpus;
    for (size_t i = 0; i < scouted->passed && corpus && c->status == GMD_OK; i++) {
        if (scouted->fresh[i]) {
            c->last_fresh = gmd_clock_s();
            c->status =
                gmd_corpus_add(corpus, &b->traces[first + i].trace, scouted->fresh[i], c->error);
        }
    }
}

static void note_scouted(campaign *c, const gmd_scouted *scouted)
{
    c->sequences += scouted->passed + scouted->is_suspect;
    c->result->faults_planted += scouted->faults_planted;
    c->result->faults_unfired += scouted->faults_unfired;
}

/* Runs a batch to its end: each suspect ends the process that it ran in. What shows a defect that
 * was found already needs no second look. */
static bool run_batch(campaign *c, const gmd_profile *profile, batch *b)
{
    bool goes_on = true;
    for (size_t at = 0; at < b->count && goes_on && !is_over(c);) {
        gmd_scouted scouted;
        gmd_error error;
        gmd_status status =
            gmd_runner_scout(&c->runner, &b->traces[at], b->count - at, &scouted, &error);
        if (status == GMD_BAD_INPUT) {
            note_refusal(c, error.text);
            return false;
        }
        if (status != GMD_OK) {
            c->status = gmd_fail(c->error, status, "%s", error.text);
            return false;
        }
        note_scouted(c, &scouted);
        note_lapses(c, profile, &scouted);
        take_fresh(c, b, at, &scouted);
        if (profile->interleaves && c->result->spins_since && !b->traces[at].expects_lapses) {
            return false; /* the rest of the round would go on like this */
        }
        at += scouted.passed;
        if (scouted.is_suspect) {
            gmd_violation suspicion = {.oracle = "progress", .message = "it did not end"};
            if (scouted.outcome->violation_count) {
                suspicion = scouted.outcome->violations[0]; /* the next run overwrites it */
            }
            bool is_known = gmd_findings_hit(c->findings, &suspicion);
            b->known += is_known;
            goes_on = is_known || run_sequence(c, &b->traces[at].trace, &suspicion);
            at++;
            tell(c, "searching");
        }
    }
    return goes_on;
}

/* Short ones at first: a campaign of a minute is to see many kinds of sequences. */
static uint64_t sequences_of(const campaign *c, const gmd_profile *profile, uint64_t round)
{
    if (profile->interleaves && c->result->spins_since) {
        return 1;
    }
    uint64_t given = c->options->round_runs;
    uint64_t count = given ? given : round < 8 ? 16 : round < 32 ? 64 : 256;
    uint64_t most = profile->interleaves        ? INTERLEAVED_MAX
                    : profile->thread_count > 1 ? THREADED_MAX
                                                : count;
    return count < most ? count : most;
}

/* A round that only comes upon what is found already is left: its inputs end too early to get
 * anywhere else. */
static void search_round(campaign *c, const source *from, uint64_t count)
{
    uint64_t left = c->options->runs ? c->options->runs - c->sequences : count;
    count = left < count ? left : count;
    batch *b = calloc(1, sizeof *b);
    bool goes_on = b != NULL;
    if (!b) {
        c->status = gmd_fail(c->error, GMD_NO_MEMORY, "no host memory for sequences");
    }
    for (uint64_t i = 0; i < count && goes_on && !is_over(c); i += BATCH) {
        size_t size = count - i < BATCH ? (size_t)(count - i) : BATCH;
        goes_on = make_batch(c, from, i, size, b) && run_batch(c, from->profile, b);
        free_batch(b);
        goes_on = goes_on && (b->known < 6 || b->known * 2 < i + size);
        tell(c, "searching");
    }
    free(b);
}

static bool note_swept(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    campaign *c = context;
    gmd_violation copy = *violation;
    c->status = gmd_findings_add(c->findings, &c->runner, trace, &copy, c->sequences,
                                 gmd_clock_s() - c->start, c->error);
    return !is_over(c);
}

static bool was_found(void *context, const gmd_violation *violation)
{
    campaign *c = context;
    return gmd_findings_hit(c->findings, violation);
}

static void tell_sweeping(void *context, uint64_t done, uint64_t all, const char *what)
{
    campaign *c = context;
    c->sequences++;
    (void)all;
    (void)what;
    if (done % PROGRESS_RUNS == 0) {
        tell(c, "sweeping");
    }
}

static void sweep_round(campaign *c, gmd_profile *profile, uint64_t seed)
{
    gmd_sweep_options options = {.memory_only = true,
                                 .scouts = true,
                                 .is_known = was_found,
                                 .has_budgets = c->options->space.has_budgets,
                                 .runs = SWEEP_RUNS,
                                 .progress = tell_sweeping,
                                 .found = note_swept,
                                 .context = c};
    profile->request_count =
        profile->request_count < SWEEP_REQUESTS ? profile->request_count : SWEEP_REQUESTS;
    profile->weights[GMD_OP_FAULT] = profile->weights[GMD_OP_BUDGET] = 0;
    profile->interleaves = false; /* a call that is to fail is found by its number */
    for (uint64_t i = 0; i < SWEEPS_A_ROUND && !is_over(c); i++) {
        gmd_trace trace;
        gmd_sweep_result result;
        gmd_error error;
        if (generate(c, profile, gmd_random_derive(seed, i), &trace)) {
            gmd_status status = gmd_sweep(&trace, &c->runner, &options, &result, &error);
            if (status == GMD_BAD_INPUT) {
                note_refusal(c, error.text);
            } else if (status != GMD_OK && c->status == GMD_OK) {
                c->status = gmd_fail(c->error, status, "%s", error.text);
            }
        }
        gmd_trace_free(&trace);
    }
}

/* --- the corpus -------------------------------------------------------------------------- */

/* Of another campaign, of another process of this one, or by hand: it is run for what it shows, and
 * stays where it shows anything new. */
static gmd_status run_read(void *context, gmd_trace *trace)
{
    campaign *c = context;
    batch *b = calloc(1, sizeof *b);
    const gmd_profile plain = {.interleaves = trace->threads.count > 1};
    if (b) {
        b->count = 1;
        gmd_space_fit(&c->options->space, trace);
        c->status = gmd_space_fit_header(&c->options->space, trace, c->error);
        b->traces[0] = (gmd_scout_trace){.trace = *trace}; /* not cut short by questions */
    } else {
        c->status = gmd_fail(c->error, GMD_NO_MEMORY, "no host memory for sequences");
    }
    if (c->status == GMD_OK && !is_over(c)) {
        run_batch(c, &plain, b);
        tell(c, "reading the corpus");
    }
    free(b);
    gmd_trace_free(trace);
    return c->status;
}

static void read_corpus(campaign *c)
{
    gmd_corpus *corpus = c->options->corpus;
    bool is_due = corpus && corpus->folder && gmd_clock_s() - c->last_read >= READ_SECONDS;
    gmd_error error = {""};
    size_t unreadable;
    if (!is_due || is_over(c)) {
        return;
    }
    gmd_status status = gmd_corpus_read(corpus, run_read, c, &unreadable, &error);
    if (status != GMD_OK && c->status == GMD_OK) {
        c->status = gmd_fail(c->error, status, "%s", error.text);
    } else if (unreadable && !c->result->unreadable) {
        snprintf(c->result->unreadable_first, sizeof c->result->unreadable_first, "%s", error.text);
    }
    c->result->unreadable += unreadable;
    c->last_read = gmd_clock_s();
}

/* --- rounds ------------------------------------------------------------------------------ */

/* False: there is nothing to go on from yet. */
static bool guided_round(campaign *c, const gmd_profile *profile, uint64_t seed)
{
    gmd_guide guide;
    gmd_trace drawn;
    gmd_profile_space space = c->options->space;
    space.has_interleaving = space.has_interleaving && !c->result->spins_since;
    gmd_profile short_one = *profile, plain = {.thread_count = 1};
    short_one.request_count = 1;
    bool can_be = generate(c, &short_one, seed, &drawn) &&
                  gmd_guide_start(&guide, c->options->corpus, &space, seed, &drawn);
    if (can_be) {
        const source from = {.profile = &plain, .guide = &guide, .seed = seed};
        search_round(c, &from, guide.header.interleave.kind ? INTERLEAVED_MAX : GUIDED_RUNS);
        gmd_guide_end(&guide);
    }
    gmd_trace_free(&drawn);
    return can_be;
}

static void drawn_round(campaign *c, const gmd_profile *profile, uint64_t seed, uint64_t round)
{
    const source from = {.profile = profile, .seed = seed};
    search_round(c, &from, sequences_of(c, profile, round));
}

/* What is gained by knowing what requests are is measured against this. */
static void random_round(campaign *c, uint64_t seed)
{
    gmd_guide guide;
    gmd_profile plain = {.thread_count = 1};
    if (gmd_guide_start_random(&guide, &c->options->space, seed)) {
        plain.interleaves = guide.header.interleave.kind != GMD_SCHEDULE_UNSTATED;
        const source from = {.profile = &plain, .guide = &guide, .seed = seed};
        search_round(c, &from, plain.interleaves ? INTERLEAVED_MAX : RANDOM_RUNS);
    } else {
        c->status = gmd_fail(c->error, GMD_NO_MEMORY, "no host memory for an input");
    }
    gmd_guide_end(&guide);
}

static bool is_guided(const campaign *c, uint64_t round)
{
    return c->options->corpus && c->options->corpus->count && round % 3 < GUIDED_ROUNDS;
}

static void play_round(campaign *c, uint64_t round)
{
    const gmd_search_options *o = c->options;
    gmd_profile profile;
    uint64_t seed = gmd_random_derive(o->seed, round);
    gmd_profile_draw(&profile, &o->space, seed);
    if (o->shape) {
        o->shape(&profile, o->kind);
    }
    c->result->status.rounds++;
    if (c->result->spins_since && round % SPINNING_SPACING != 0) {
        profile.interleaves = false;
    }
    read_corpus(c);
    if (o->is_random) {
        random_round(c, seed);
        return;
    }
    bool sweeps = o->space.has_faults && round % 4 == 3 && !o->no_sweeps;
    if (sweeps) {
        sweep_round(c, &profile, seed);
    } else if (!is_guided(c, round) || !guided_round(c, &profile, seed)) {
        drawn_round(c, &profile, seed, round);
    }
}

gmd_status gmd_search(const gmd_search_options *options, gmd_findings *findings,
                      gmd_search_result *result, gmd_error *error)
{
    *result = (gmd_search_result){.status = {.doing = "searching"}};
    campaign c = {.options = options,
                  .findings = findings,
                  .result = result,
                  .start = gmd_clock_s(),
                  .last_fresh = gmd_clock_s(),
                  .error = error};
    gmd_runner_init(&c.runner, options->run);
    findings->progress = tell_minimising;
    findings->context = &c;
    for (uint64_t round = 0; !is_over(&c); round++) {
        play_round(&c, round);
    }
    tell(&c, "done");
    gmd_runner_close(&c.runner);
    findings->progress = NULL;
    return c.status;
}
