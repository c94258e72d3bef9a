#include "campaign.h"

#include "guide.h"

#include "gmd_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTERLEAVED_MAX 16 /* sequences of a round: each takes as long as fifty others */
#define THREADED_MAX    32 /* likewise, ten */
#define GUIDED_ROUNDS   1  /* of three, once there is a corpus */
#define GUIDED_RUNS     96 /* sequences of such a round */
#define RANDOM_RUNS     64
#define REAL_RUNS       256 /* on a real device, where a process takes a second and a half */
#define RARELY          16  /* one round in so many: what few defects need, and costs more */

/* --- the campaign ------------------------------------------------------------------------ */

void gmd_campaign_tell(gmd_campaign *c, const char *doing)
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
    gmd_campaign *c = context;
    c->result->status.case_requests = requests;
    if (tries % GMD_PROGRESS_RUNS == 0) {
        gmd_campaign_tell(c, "minimising");
    }
}

bool gmd_campaign_is_over(const gmd_campaign *c)
{
    const gmd_search_options *o = c->options;
    return c->status != GMD_OK || (o->is_interrupted && *o->is_interrupted) ||
           (o->ends_when_found && c->findings->count) || (o->runs && c->sequences >= o->runs) ||
           (o->seconds > 0 && gmd_clock_s() - c->start >= o->seconds);
}

void gmd_campaign_note_refusal(gmd_campaign *c, const char *reason)
{
    if (!c->result->refused++) {
        snprintf(c->result->refusal, sizeof c->result->refusal, "%s", reason);
    }
}

void gmd_campaign_add_finding(gmd_campaign *c, const gmd_trace *trace,
                              const gmd_violation *violation)
{
    gmd_violation copy = *violation; /* the next run overwrites it */
    c->status = gmd_findings_add(c->findings, &c->runner, trace, &copy, c->sequences,
                                 gmd_clock_s() - c->start, c->error);
}

/* What a run that ended badly, by itself, tells. False: the round is not worth going on with. */
static bool take_outcome(gmd_campaign *c, const gmd_trace *trace, const gmd_outcome *outcome,
                         const gmd_violation *suspicion)
{
    if (outcome->violation_count) {
        gmd_campaign_add_finding(c, trace, &outcome->violations[0]);
        return c->status == GMD_OK;
    }
    if (outcome->verdict == GMD_ERROR) {
        gmd_campaign_note_refusal(c, outcome->error);
        return false;
    }
    if (!c->result->unconfirmed++) {
        c->result->unconfirmed_first = *suspicion;
    }
    return true;
}

/* A sequence that was suspected counts for what it shows by itself. */
static bool run_sequence(gmd_campaign *c, const gmd_trace *trace, const gmd_violation *suspicion)
{
    const gmd_outcome *outcome;
    gmd_error error;
    gmd_status status = gmd_runner_run(&c->runner, trace, &outcome, &error);
    if (status == GMD_BAD_INPUT) {
        gmd_campaign_note_refusal(c, error.text);
        return false;
    }
    if (status != GMD_OK) {
        c->status = gmd_fail(c->error, status, "%s", error.text);
        return false;
    }
    return take_outcome(c, trace, outcome, suspicion);
}

bool gmd_campaign_generate(gmd_campaign *c, const gmd_profile *profile, uint64_t seed,
                           gmd_trace *trace)
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

static void note_lapses(gmd_campaign *c, bool interleaves, const gmd_persistent_result *scouted)
{
    gmd_search_result *r = c->result;
    if (!interleaves) {
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

/* Where the sequences of a round come from. */
typedef struct source {
    const gmd_profile *profile; /* each is drawn by it */
    gmd_guide *guide;           /* or made of the corpus; NULL: not */
    uint64_t seed;
} source;

static void free_batch(gmd_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        gmd_trace_free(&b->traces[i].trace);
    }
    b->count = 0;
}

/* The questions after a refusal end a sequence: after which one is drawn, the first ones more often
 * than the later ones, and for some it is none. Mostly it is one of those that may be false. */
static uint64_t choose_refusal(uint64_t seed)
{
    gmd_random r = {seed};
    uint64_t kind = gmd_random_below(&r, 10);
    uint64_t most = 1 + gmd_random_below(&r, kind < 7 ? 6 : 12);
    uint64_t which = 1 + gmd_random_below(&r, most);
    return kind < 7 ? GMD_DOUBTFUL_REFUSAL(which) : kind < 9 ? which : 0;
}

static bool make_sequence(gmd_campaign *c, const source *from, uint64_t seed, gmd_trace *trace)
{
    if (!from->guide) {
        return gmd_campaign_generate(c, from->profile, seed, trace);
    }
    c->status = gmd_guide_make(from->guide, trace, c->error);
    return c->status == GMD_OK;
}

static bool make_batch(gmd_campaign *c, const source *from, uint64_t first, size_t count,
                       gmd_batch *b)
{
    b->count = b->next = 0;
    while (b->count < count) {
        uint64_t own = gmd_random_derive(from->seed, first + b->count);
        gmd_persistent_input *t = &b->traces[b->count++];
        t->probed_refusal = choose_refusal(~own);
        t->expects_lapses = c->result->spins_since != 0;
        if (!make_sequence(c, from, own, &t->trace)) {
            return false;
        }
    }
    return true;
}

/* What brought the allocator into a new state is worth going on from. */
static void take_fresh(gmd_campaign *c, const gmd_batch *b, size_t first,
                       const gmd_persistent_result *scouted)
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

static void note_scouted(gmd_campaign *c, const gmd_persistent_result *scouted)
{
    c->sequences += scouted->passed + scouted->is_suspect;
    c->result->faults_planted += scouted->faults_planted;
    c->result->faults_unfired += scouted->faults_unfired;
}

/* The next of the batch was suspected: it counts for what it shows by itself. */
static bool look_again(gmd_campaign *c, gmd_batch *b, const gmd_outcome *outcome)
{
    gmd_violation suspicion = {.oracle = "progress", .message = "it did not end"};
    if (outcome->violation_count) {
        suspicion = outcome->violations[0]; /* the next run overwrites it */
    }
    bool is_known = gmd_findings_hit(c->findings, &suspicion);
    bool goes_on = is_known || run_sequence(c, &b->traces[b->next].trace, &suspicion);
    b->known += is_known;
    b->next++;
    gmd_campaign_tell(c, "searching");
    return goes_on;
}

bool gmd_campaign_run_batch(gmd_campaign *c, bool interleaves, gmd_batch *b)
{
    bool goes_on = true;
    while (b->next < b->count && goes_on && !gmd_campaign_is_over(c)) {
        gmd_persistent_result scouted;
        gmd_error error;
        size_t at = b->next;
        gmd_status status =
            gmd_runner_scout(&c->runner, &b->traces[at], b->count - at, &scouted, &error);
        if (status == GMD_BAD_INPUT) {
            b->next = b->count;
            gmd_campaign_note_refusal(c, error.text);
            return false;
        }
        if (status != GMD_OK) {
            c->status = gmd_fail(c->error, status, "%s", error.text);
            return false;
        }
        note_scouted(c, &scouted);
        note_lapses(c, interleaves, &scouted);
        take_fresh(c, b, at, &scouted);
        b->next += scouted.passed;
        if (interleaves && c->result->spins_since && !b->traces[at].expects_lapses) {
            return false; /* the rest of the round would go on like this */
        }
        if (scouted.is_suspect) {
            goes_on = look_again(c, b, scouted.outcome);
        }
    }
    return goes_on;
}

/* Short ones at first: a campaign of a minute is to see many kinds of sequences. */
static uint64_t usual_length(const gmd_campaign *c, uint64_t round)
{
    if (c->options->run->device != GMD_DEVICE_SIM) {
        return REAL_RUNS;
    }
    return round < 8 ? 16 : round < 32 ? 64 : 256;
}

static uint64_t sequences_of(const gmd_campaign *c, const gmd_profile *profile, uint64_t round)
{
    if (profile->interleaves && c->result->spins_since) {
        return 1;
    }
    uint64_t count = c->options->round_runs ? c->options->round_runs : usual_length(c, round);
    uint64_t most = profile->interleaves        ? INTERLEAVED_MAX
                    : profile->thread_count > 1 ? THREADED_MAX
                                                : count;
    return count < most ? count : most;
}

/* A round that only comes upon what is found already is left: its inputs end too early to get
 * anywhere else. */
static void search_round(gmd_campaign *c, const source *from, uint64_t count)
{
    uint64_t left = c->options->runs ? c->options->runs - c->sequences : count;
    count = left < count ? left : count;
    gmd_batch *b = calloc(1, sizeof *b);
    bool goes_on = b != NULL;
    if (!b) {
        c->status = gmd_fail(c->error, GMD_NO_MEMORY, "no host memory for sequences");
    }
    for (uint64_t i = 0; i < count && goes_on && !gmd_campaign_is_over(c); i += GMD_BATCH) {
        size_t size = count - i < GMD_BATCH ? (size_t)(count - i) : GMD_BATCH;
        goes_on = make_batch(c, from, i, size, b) &&
                  gmd_campaign_run_batch(c, from->profile->interleaves, b);
        free_batch(b);
        goes_on = goes_on && (b->known < 6 || b->known * 2 < i + size);
        gmd_campaign_tell(c, "searching");
    }
    free(b);
}

/* --- rounds ------------------------------------------------------------------------------ */

/* False: there is nothing to go on from yet. */
static bool guided_round(gmd_campaign *c, const gmd_profile *profile, uint64_t seed)
{
    gmd_guide guide;
    gmd_trace drawn;
    gmd_profile_space space = c->options->space;
    space.has_interleaving = space.has_interleaving && !c->result->spins_since;
    gmd_profile short_one = *profile, plain = {.thread_count = 1};
    short_one.request_count = 1;
    bool can_be = gmd_campaign_generate(c, &short_one, seed, &drawn) &&
                  gmd_guide_start(&guide, c->options->corpus, &space, seed, &drawn);
    if (can_be) {
        const source from = {.profile = &plain, .guide = &guide, .seed = seed};
        search_round(c, &from, guide.header.interleave.kind ? INTERLEAVED_MAX : GUIDED_RUNS);
        gmd_guide_end(&guide);
    }
    gmd_trace_free(&drawn);
    return can_be;
}

static void drawn_round(gmd_campaign *c, const gmd_profile *profile, uint64_t seed, uint64_t round)
{
    const source from = {.profile = profile, .seed = seed};
    search_round(c, &from, sequences_of(c, profile, round));
}

/* What is gained by knowing what requests are is measured against this. */
static void random_round(gmd_campaign *c, uint64_t seed)
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

static bool is_guided(const gmd_campaign *c, uint64_t round)
{
    return c->options->corpus && c->options->corpus->count && round % 3 < GUIDED_ROUNDS;
}

static void play_round(gmd_campaign *c, uint64_t round)
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
    gmd_campaign_read_corpus(c);
    if (o->is_random) {
        random_round(c, seed);
        return;
    }
    bool sweeps = o->space.has_faults && round % 4 == 3 && !o->no_sweeps;
    bool repeats = round % RARELY == RARELY - 2 && !o->shape;
    if (sweeps) {
        gmd_campaign_sweep(c, &profile, seed, round % RARELY == RARELY - 1 && !o->shape);
    } else if ((!repeats || !gmd_campaign_repeat(c, &profile, seed)) &&
               (!is_guided(c, round) || !guided_round(c, &profile, seed))) {
        drawn_round(c, &profile, seed, round);
    }
}

gmd_status gmd_search(const gmd_search_options *options, gmd_findings *findings,
                      gmd_search_result *result, gmd_error *error)
{
    *result = (gmd_search_result){.status = {.doing = "searching"}};
    gmd_campaign c = {.options = options,
                      .findings = findings,
                      .result = result,
                      .start = gmd_clock_s(),
                      .last_fresh = gmd_clock_s(),
                      .error = error};
    gmd_runner_init(&c.runner, options->run);
    findings->progress = tell_minimising;
    findings->context = &c;
    for (uint64_t round = 0; !gmd_campaign_is_over(&c); round++) {
        play_round(&c, round);
    }
    gmd_campaign_tell(&c, "done");
    gmd_runner_close(&c.runner);
    findings->progress = NULL;
    return c.status;
}
