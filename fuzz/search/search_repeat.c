/* search_repeat.c - rounds of sequences that are run by themselves. What passes is repeated there
 * until it shows whether freed blocks are used again (driver/session/rounds.c), which many
 * sequences in one process leave no time for. Some are repeated for longer: until it shows whether
 * the host's memory, or the device's, grows with every turn (gmd_rounds.h). */
#include "campaign.h"

#include "gmd_clock.h"
#include "gmd_min.h"
#include "gmd_pool_state.h"
#include "gmd_rounds.h"
#include "gmd_size.h"

#include <stdlib.h>

#define SEQUENCES 8
#define LONG      2  /* of them are repeated for longer, */
#define VARIED    4  /* and so many more that have what a run by itself does not repeat */
#define ROOM_LONG 40 /* requests of these, about */
/* Blocks asked for in all: at first, and before growth counts. */
#define AT_FIRST         UINT64_C(2048)
#define AT_LAST          UINT64_C(8192)
#define VARIED_WEIGHT    40
#define UNROLLED_MAX     200000  /* requests */
#define LONG_UNTIL       0.9     /* of the campaign's time: it takes seconds on a busy machine */
#define MINIMIZE_SECONDS 20.0    /* of growth, whose every try takes a while */
#define ROOM             GMD_GIB /* what is lost shows as growth, for which there must be room */

/* What is repeated is requests only: what would change the device from one time to the next, or
 * plants something, is left out. */
static void make_repeatable(gmd_profile *profile, const gmd_profile_space *space)
{
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        profile->weights[op] = gmd_op_is(op, GMD_IS_FOR_ALL) ? 0 : profile->weights[op];
    }
    profile->fraction = 1;
    profile->conditions.capacity_bytes =
        !space->capacity_bytes && profile->conditions.capacity_bytes < ROOM
            ? ROOM
            : profile->conditions.capacity_bytes;
    profile->thread_count = 1;
    profile->interleaves = false;
}

/* Streams come and go in each turn, and private pools and graphs; in every other one, turns of
 * requests. What is kept under a handle is kept once where handles come again. */
static void make_varied(gmd_profile *p, const gmd_profile_space *space, uint64_t seed)
{
    bool has_turns = seed % 2;
    p->conditions.reuses_handles = space->has_reused_handles;
    p->request_count = (uint32_t)gmd_min(p->request_count, ROOM_LONG);
    p->many_room = ROOM_LONG;
    if (has_turns) {
        gmd_profile_take_many(p, space, GMD_MANY_TURNS, seed);
        make_repeatable(p, space);
    }
    p->stream_count += p->stream_count == 1;
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        bool is_meant = op == GMD_OP_DESTROY ? space->has_reused_handles : gmd_op_is_on_pool(op);
        bool is_left_out = gmd_op_needs(op, GMD_NEEDS_CHECKPOINTS) || space->without_ops >> op & 1;
        if (is_meant && !is_left_out && (op == GMD_OP_DESTROY || seed / 2 % 2)) {
            p->weights[op] = VARIED_WEIGHT;
        }
    }
}

/* A turn leaves no pool open and holds none, or the next one would hold more. */
static gmd_status close_pools(gmd_trace *trace, gmd_error *error)
{
    gmd_pool_state pools = {0};
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < trace->count; i++) {
        if (gmd_op_is_on_pool(trace->requests[i].op)) {
            gmd_pool_state_note(&pools, &trace->requests[i]);
        }
    }
    for (uint32_t device = 0; device < GMD_MAX_DEVICES; device++) {
        if (pools.open[device] && status == GMD_OK) {
            bool is_capture = pools.capturing == device + 1;
            gmd_request end = {.op = is_capture ? GMD_OP_END_CAPTURE : GMD_OP_END_POOL,
                               .device = (uint8_t)device,
                               .pool = pools.open[device] - 1u};
            gmd_pool_state_note(&pools, &end);
            status = gmd_trace_append(trace, &end, error);
        }
    }
    for (uint32_t i = 0; i < GMD_MAX_DEVICES * GMD_MAX_POOLS && status == GMD_OK; i++) {
        gmd_request release = {.op = GMD_OP_RELEASE_POOL,
                               .device = (uint8_t)(i / GMD_MAX_POOLS),
                               .pool = i % GMD_MAX_POOLS};
        while (status == GMD_OK && !gmd_pool_state_note(&pools, &release)) {
            status = gmd_trace_append(trace, &release, error);
        }
    }
    return status;
}

/* False: the round is not worth going on with. */
static bool run_alone(campaign *c, const gmd_trace *trace)
{
    const gmd_outcome *outcome;
    gmd_error error;
    gmd_status status = gmd_runner_run(&c->runner, trace, &outcome, &error);
    if (status != GMD_OK) {
        campaign_cannot_run(c, status, error.text);
        return false;
    }
    if (outcome->verdict == GMD_ERROR && !outcome->violation_count) {
        campaign_note_error(c, outcome);
        return false;
    }
    c->sequences++;
    if (outcome->violation_count && !gmd_findings_hit(c->findings, &outcome->violations[0])) {
        campaign_add_finding(c, trace, &outcome->violations[0]);
    }
    return true;
}

/* What grows in as many turns as a gate makes, or what else is wrong in one of them. NULL: nothing,
 * or there was no time for it. */
static const gmd_violation *run_for_long(campaign *c, const gmd_trace *trace, gmd_outcome *outcome)
{
    static const uint64_t allocations[] = {AT_FIRST, AT_LAST};
    gmd_error error;
    for (size_t i = 0; i < sizeof allocations / sizeof *allocations; i++) {
        if (campaign_is_over(c) ||
            gmd_rounds_run(c->options->run, trace, allocations[i], outcome, &error) != GMD_OK ||
            !outcome->violation_count) {
            return NULL;
        }
        if (!gmd_rounds_is_growth(&outcome->violations[0])) {
            break;
        }
    }
    return &outcome->violations[0];
}

/* What is wrong in some turn is wrong in a trace of all turns up to it. */
static void note_found_on_the_way(campaign *c, const gmd_trace *trace,
                                  const gmd_violation *violation)
{
    gmd_trace all;
    gmd_error error;
    uint64_t turns = violation->request / (trace->count ? trace->count : 1) + 1;
    if (turns * trace->count <= UNROLLED_MAX &&
        gmd_rounds_unroll(trace, (uint32_t)turns, &all, &error) == GMD_OK) {
        run_alone(c, &all);
        gmd_trace_free(&all);
    }
}

static void repeat_for_long(campaign *c, gmd_trace *trace)
{
    gmd_outcome *outcome = calloc(1, sizeof *outcome);
    const gmd_violation *violation = outcome ? run_for_long(c, trace, outcome) : NULL;
    if (violation && !gmd_findings_hit(c->findings, violation)) {
        gmd_violation copy = *violation;
        if (gmd_rounds_is_growth(&copy)) {
            gmd_rounds_minimize(c->options->run, trace, AT_LAST, MINIMIZE_SECONDS);
            campaign_add_finding(c, trace, &copy);
        } else {
            note_found_on_the_way(c, trace, &copy);
        }
    }
    free(outcome);
}

static bool has_time(const campaign *c)
{
    double seconds = c->options->seconds;
    return !campaign_is_over(c) &&
           (seconds <= 0 || gmd_clock_s() - c->start < LONG_UNTIL * seconds);
}

static bool repeat_one(campaign *c, const gmd_profile *profile, uint64_t seed, bool is_varied,
                       bool is_long)
{
    gmd_trace trace;
    bool goes_on = campaign_generate(c, profile, seed, &trace);
    if (goes_on && is_varied) {
        c->status = close_pools(&trace, c->error);
    }
    goes_on = goes_on && c->status == GMD_OK && run_alone(c, &trace);
    if (goes_on && is_long && has_time(c)) {
        repeat_for_long(c, &trace);
    }
    gmd_trace_free(&trace);
    return goes_on;
}

bool campaign_repeat(campaign *c, gmd_profile *profile, uint64_t seed)
{
    bool is_limited = c->options->space.fraction > 0; /* by a request of its own, each time */
    if (c->options->run->device.kind != GMD_DEVICE_SIM || is_limited) {
        return false;
    }
    make_repeatable(profile, &c->options->space);
    bool goes_on = true;
    for (uint64_t i = 0; i < SEQUENCES && goes_on && !campaign_is_over(c); i++) {
        goes_on = repeat_one(c, profile, gmd_random_derive(seed, i), false, i < LONG);
    }
    for (uint64_t i = 0; i < VARIED && goes_on && !campaign_is_over(c); i++) {
        gmd_profile varied = *profile;
        uint64_t own = gmd_random_derive(seed, SEQUENCES + i);
        make_varied(&varied, &c->options->space, own);
        goes_on = repeat_one(c, &varied, own, true, true);
    }
    campaign_tell(c, "searching");
    return true;
}
