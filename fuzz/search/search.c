#include "gmd_search.h"

#include "campaign.h"
#include "guide.h"

#include "gmd_clock.h"
#include "gmd_min.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTERLEAVED_MAX  16 /* sequences of a round: each takes as long as fifty others */
#define THREADED_MAX     32 /* likewise, ten */
#define GUIDED_ROUNDS    1  /* of three, once there is a corpus */
#define GUIDED_RUNS      96 /* sequences of such a round */
#define RANDOM_RUNS      64
#define REAL_RUNS        256 /* on a real device, where a process takes a second and a half */
#define CYCLE            16  /* rounds, after which their kinds come again */
#define TURNS_OR_RACES   6   /* the one of a cycle that has turns where there are no races */
#define RACES            512 /* sequences of a round in which threads meet */
#define RACES_SPACING    2   /* one round in so many, where threads can be switched at accesses */
#define SPINNING_SPACING 4   /* once threads spin: one round in so many interleaves one sequence */

static void tell_minimising(void *context, size_t requests, uint64_t tries)
{
    campaign *c = context;
    c->result->status.case_requests = requests;
    if (tries % PROGRESS_RUNS == 0) {
        campaign_tell(c, "minimising");
    }
}

/* --- batches ----------------------------------------------------------------------------- */

/* Where the sequences of a round come from. */
typedef struct source {
    const gmd_profile *profile; /* each is drawn by it */
    guide *guide;               /* or made of the corpus; NULL: not */
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
 * than the later ones, and for some it is none. Mostly it is one of those that may be false. */
static uint64_t choose_refusal(uint64_t seed)
{
    gmd_random r = {seed};
    uint64_t kind = gmd_random_below(&r, 10);
    uint64_t most = 1 + gmd_random_below(&r, kind < 7 ? 6 : 12);
    uint64_t which = 1 + gmd_random_below(&r, most);
    return kind < 7 ? GMD_DOUBTFUL_REFUSAL(which) : kind < 9 ? which : 0;
}

static bool make_sequence(campaign *c, const source *from, uint64_t seed, gmd_trace *trace)
{
    if (!from->guide) {
        return campaign_generate(c, from->profile, seed, trace);
    }
    c->status = guide_make(from->guide, trace, c->error);
    return c->status == GMD_OK;
}

static bool make_batch(campaign *c, const source *from, uint64_t first, size_t count, batch *b)
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

/* Short ones at first: a campaign of a minute is to see many kinds of sequences. */
static uint64_t usual_length(const campaign *c, uint64_t round)
{
    if (c->options->run->device.kind != GMD_DEVICE_SIM) {
        return REAL_RUNS;
    }
    return round < 8 ? 16 : round < 32 ? 64 : 256;
}

static uint64_t sequences_of(const campaign *c, const gmd_profile *profile, uint64_t round)
{
    if (profile->interleaves && c->result->spins_since) {
        return 1;
    }
    uint64_t count = c->options->round_runs ? c->options->round_runs : usual_length(c, round);
    uint64_t most = profile->interleaves        ? INTERLEAVED_MAX
                    : profile->thread_count > 1 ? THREADED_MAX
                                                : count;
    return gmd_min(count, most);
}

/* A round that only comes upon what is found already is left: its inputs end too early to get
 * anywhere else. */
static void search_round(campaign *c, const source *from, uint64_t count)
{
    uint64_t left = c->options->runs ? c->options->runs - c->sequences : count;
    count = gmd_min(left, count);
    batch *b = calloc(1, sizeof *b);
    bool goes_on = b != NULL;
    if (!b) {
        c->status = gmd_fail(c->error, GMD_NO_MEMORY, "no host memory for sequences");
    }
    for (uint64_t i = 0; i < count && goes_on && !campaign_is_over(c); i += BATCH) {
        size_t size = count - i < BATCH ? (size_t)(count - i) : BATCH;
        goes_on =
            make_batch(c, from, i, size, b) && campaign_run_batch(c, from->profile->interleaves, b);
        free_batch(b);
        goes_on = goes_on && (b->known < 6 || b->known * 2 < i + size);
        campaign_tell(c, "searching");
    }
    free(b);
}

/* --- rounds ------------------------------------------------------------------------------ */

/* False: there is nothing to go on from yet. */
static bool guided_round(campaign *c, const gmd_profile *profile, uint64_t seed)
{
    guide g;
    gmd_trace drawn;
    gmd_profile_space space = c->options->space;
    space.has_interleaving = space.has_interleaving && !c->result->spins_since;
    gmd_profile short_one = *profile, plain = {.thread_count = 1};
    short_one.request_count = 1;
    bool can_be = campaign_generate(c, &short_one, seed, &drawn) &&
                  guide_start(&g, c->options->corpus, &space, seed, &drawn.conditions);
    if (can_be) {
        const source from = {.profile = &plain, .guide = &g, .seed = seed};
        search_round(c, &from, g.header.interleave.kind ? INTERLEAVED_MAX : GUIDED_RUNS);
        guide_end(&g);
    }
    gmd_trace_free(&drawn);
    return can_be;
}

/* Each is short; many more of them than of other interleaved ones, once a campaign has seen some of
 * everything. */
static uint64_t races_of(const campaign *c, uint64_t round)
{
    uint64_t most = c->result->spins_since ? INTERLEAVED_MAX : RACES;
    return gmd_min(round < 32 ? usual_length(c, round) : RACES, most);
}

static void drawn_round(campaign *c, const gmd_profile *profile, uint64_t seed, uint64_t round)
{
    const source from = {.profile = profile, .seed = seed};
    search_round(c, &from, sequences_of(c, profile, round));
}

/* What is gained by knowing what requests are is measured against this. */
static void random_round(campaign *c, uint64_t seed)
{
    guide g;
    gmd_profile plain = {.thread_count = 1};
    if (guide_start_random(&g, &c->options->space, seed)) {
        plain.interleaves = g.header.interleave.kind != GMD_SCHEDULE_UNSTATED;
        const source from = {.profile = &plain, .guide = &g, .seed = seed};
        search_round(c, &from, plain.interleaves ? INTERLEAVED_MAX : RANDOM_RUNS);
    } else {
        c->status = gmd_fail(c->error, GMD_NO_MEMORY, "no host memory for an input");
    }
    guide_end(&g);
}

static bool is_guided(const campaign *c, uint64_t round)
{
    return c->options->corpus && c->options->corpus->count && round % 3 < GUIDED_ROUNDS;
}

/* How many sequences of that kind a round has: the more requests each has, the fewer. */
static uint64_t sequences_with_many(gmd_many many, uint64_t round)
{
    static const uint8_t counts[GMD_MANY_KINDS] = {
        [GMD_MANY_RECORDS] = 16, [GMD_MANY_STREAMS] = 8,    [GMD_MANY_BLOCKS] = 8,
        [GMD_MANY_DEVICES] = 8,  [GMD_MANY_THREADS] = 4,    [GMD_MANY_POOLS] = 8,
        [GMD_MANY_CAPTURES] = 8, [GMD_MANY_OPERATIONS] = 1, [GMD_MANY_TURNS] = 32};
    uint64_t count = counts[many];
    return many == GMD_MANY_TURNS && round >= UINT64_C(2) * CYCLE ? 2 * count : count;
}

/* Every eighth round has one of the other kinds, each in turn. */
static gmd_many many_of(uint64_t round)
{
    gmd_many other = (gmd_many)(1 + round / 8 % (GMD_MANY_TURNS - 1));
    return round % 8 == 2 ? other : GMD_MANY_TURNS;
}

/* False: there is no such round here. */
static bool many_round(campaign *c, const gmd_profile *drawn, uint64_t seed, uint64_t round)
{
    gmd_profile profile = *drawn;
    gmd_many many = many_of(round);
    if (c->options->run->device.kind != GMD_DEVICE_SIM ||
        !gmd_profile_take_many(&profile, &c->options->space, many, seed)) {
        return false;
    }
    profile.interleaves = profile.interleaves && !c->result->spins_since;
    const source from = {.profile = &profile, .seed = seed};
    search_round(c, &from, sequences_with_many(many, round));
    return true;
}

/* What the rounds of a cycle are; each part of a campaign has its turn in the first one. */
typedef enum round_kind { DRAWN, SWEEP, SWEEP_OTHERS, WAITS, REPEATS, MANY } round_kind;

static round_kind kind_of(const campaign *c, uint64_t round)
{
    static const round_kind cycle[CYCLE] = {DRAWN, MANY, MANY, SWEEP, DRAWN, WAITS, MANY,    SWEEP,
                                            DRAWN, MANY, MANY, SWEEP, DRAWN, WAITS, REPEATS, SWEEP};
    const gmd_search_options *o = c->options;
    round_kind kind = cycle[round % CYCLE];
    bool has_faults = o->space.has_faults && !o->no_sweeps;
    if ((kind == SWEEP || kind == WAITS) && !has_faults) {
        return DRAWN;
    }
    if ((kind == MANY || kind == REPEATS) && o->shape) {
        return DRAWN;
    }
    return kind == SWEEP && round % CYCLE == CYCLE - 1 && !o->shape ? SWEEP_OTHERS : kind;
}

static void play_kind(campaign *c, gmd_profile *profile, uint64_t seed, uint64_t round)
{
    bool is_played = true;
    switch (kind_of(c, round)) {
    case SWEEP:
    case SWEEP_OTHERS:
        campaign_sweep(c, profile, seed, kind_of(c, round) == SWEEP_OTHERS);
        break;
    case WAITS:
        campaign_sweep_waits(c, profile, seed);
        break;
    case REPEATS:
        is_played = campaign_repeat(c, profile, seed);
        break;
    case MANY:
        is_played = many_round(c, profile, seed, round);
        break;
    default:
        is_played = false;
    }
    if (!is_played && (!is_guided(c, round) || !guided_round(c, profile, seed))) {
        drawn_round(c, profile, seed, round);
    }
}

/* Threads that meet at accesses, in the place of other drawn sequences and of sweeps. False: there
 * is no such round. */
static bool races_round(campaign *c, gmd_profile *profile, uint64_t seed, uint64_t round)
{
    const gmd_search_options *o = c->options;
    round_kind kind = kind_of(c, round);
    bool is_taken = kind == REPEATS || (kind == MANY && round % CYCLE != TURNS_OR_RACES);
    if (!o->space.has_accesses || round % RACES_SPACING || is_taken || o->shape ||
        !gmd_profile_race(profile, &o->space, seed)) {
        return false;
    }
    search_round(c, &(source){.profile = profile, .seed = seed}, races_of(c, round));
    return true;
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
    campaign_read_corpus(c);
    if (o->is_random) {
        random_round(c, seed);
    } else if (!races_round(c, &profile, seed, round)) {
        play_kind(c, &profile, seed, round);
    }
}

/* An interruption is no failure. */
static gmd_status end_search(campaign *c)
{
    bool is_interrupted = c->status == GMD_INTERRUPTED || campaign_is_interrupted(c);
    c->result->is_interrupted = is_interrupted && !campaign_is_done(c);
    c->result->judged = c->runner.judged;
    if (c->options->corpus) {
        c->result->unwritten = c->options->corpus->unwritten;
        memcpy(c->result->unwritten_first, c->options->corpus->unwritten_first,
               sizeof c->result->unwritten_first);
    }
    return c->status == GMD_INTERRUPTED ? GMD_OK : c->status;
}

#define REST_SECONDS 1.0 /* after the end, for what is under way */

/* A campaign that has judged nothing has not passed. */
static void demand_a_sequence(campaign *c)
{
    const gmd_search_result *r = c->result;
    if (c->status == GMD_OK && r->cut_off && c->sequences <= r->cut_off && !c->findings->count) {
        c->status = gmd_fail(c->error, GMD_FAILED,
                             "no sequence had ended when the time of %g s was over: nothing was "
                             "judged; give it more time",
                             c->options->seconds);
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
    c.runner.deadline_s = options->seconds > 0 ? c.start + options->seconds + REST_SECONDS : 0;
    findings->progress = tell_minimising;
    findings->context = &c;
    for (uint64_t round = 0; !campaign_is_over(&c); round++) {
        play_round(&c, round);
    }
    gmd_runner_close(&c.runner);
    demand_a_sequence(&c);
    gmd_status status = end_search(&c);
    campaign_tell(&c, "done");
    findings->progress = NULL;
    return status;
}
