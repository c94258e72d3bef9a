/* search_sweep.c - rounds in which calls fail, one after the other, in short sequences. */
#include "campaign.h"

#include "gmd_min.h"

#include <string.h>

#define SWEEPS_A_ROUND 2
#define SWEEP_RUNS     200
#define SWEEP_REQUESTS 30
#define SWEEP_ROOM     40 /* likewise, of turns */
#define WAIT_SEQUENCES 16
#define WAIT_REQUESTS  120 /* of a sequence; the same of turns */
#define WAIT_RUNS      24  /* in each */
#define ANSWER_SECONDS 3   /* of a request in a sequence that takes milliseconds */

static bool note_swept(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    campaign *c = context;
    campaign_add_finding(c, trace, violation);
    return !campaign_is_over(c);
}

static bool was_found(void *context, const gmd_violation *violation)
{
    campaign *c = context;
    return gmd_findings_hit(c->findings, violation);
}

/* After an error that is none of memory an allocator may refuse all that comes, or end the process.
 * That it comes back is asked all the same. */
static bool note_hang(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    return gmd_is_without_end(violation) ? note_swept(context, trace, violation) : true;
}

static bool counts_for_nothing(void *context, const gmd_violation *violation)
{
    return !gmd_is_without_end(violation) || was_found(context, violation);
}

static void tell_sweeping(void *context, uint64_t done, uint64_t all, const char *what)
{
    campaign *c = context;
    c->sequences++;
    (void)all;
    (void)what;
    if (done % PROGRESS_RUNS == 0) {
        campaign_tell(c, "sweeping");
    }
}

static void sweep(campaign *c, const gmd_trace *trace, gmd_runner *runner,
                  const gmd_sweep_options *options)
{
    gmd_sweep_result result;
    gmd_error error;
    gmd_status status = gmd_sweep(trace, runner, options, &result, &error);
    c->result->cut_off += result.is_cut_off;
    if (status != GMD_OK) {
        campaign_cannot_run(c, status, error.text);
    } else if (status == GMD_OK && result.case_fails && !was_found(c, &result.violation)) {
        campaign_add_finding(c, trace, &result.violation);
    }
}

static void sweep_memory(campaign *c, const gmd_trace *trace)
{
    const gmd_sweep_options options = {.memory_only = true,
                                       .is_persistent = true,
                                       .is_known = was_found,
                                       .has_budgets = c->options->space.has_budgets,
                                       .runs = SWEEP_RUNS,
                                       .progress = tell_sweeping,
                                       .found = note_swept,
                                       .context = c};
    sweep(c, trace, &c->runner, &options);
}

static void sweep_others(campaign *c, const gmd_trace *trace)
{
    const gmd_sweep_options options = {.others_only = true,
                                       .is_persistent = true,
                                       .is_known = counts_for_nothing,
                                       .runs = SWEEP_RUNS,
                                       .progress = tell_sweeping,
                                       .found = note_hang,
                                       .context = c};
    const gmd_run_options hasty = gmd_options_hurried(c->options->run, ANSWER_SECONDS);
    gmd_runner runner;
    gmd_runner_init(&runner, &hasty);
    runner.deadline_s = c->runner.deadline_s;
    sweep(c, trace, &runner, &options);
    gmd_runner_close(&runner);
    c->runner.requests += runner.requests;
    c->runner.known += runner.known;
    gmd_judged_add(&c->runner.judged, runner.judged.oracles, runner.judged.count);
    gmd_add_troubles(&c->runner.troubles, &runner.troubles);
}

/* An allocator may refuse what comes, or lose memory, where a wait has failed: not hand out or give
 * back what somebody still works on. */
static bool is_of_waits(const gmd_violation *violation)
{
    return strcmp(violation->oracle, "stream_order") == 0 ||
           strcmp(violation->oracle, "data") == 0 || gmd_is_without_end(violation);
}

static bool note_waits(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    return is_of_waits(violation) ? note_swept(context, trace, violation) : true;
}

static bool is_nothing_of_waits(void *context, const gmd_violation *violation)
{
    return !is_of_waits(violation) || was_found(context, violation);
}

/* The second half of a round has turns, which reach what a few requests do not. */
static void take_turns(const campaign *c, gmd_profile *profile, uint32_t room, uint64_t seed)
{
    profile->many_room = room;
    if (!c->options->shape) {
        gmd_profile_take_many(profile, &c->options->space, GMD_MANY_TURNS, seed);
        profile->interleaves = false;
    }
}

void campaign_sweep_waits(campaign *c, gmd_profile *profile, uint64_t seed)
{
    const gmd_sweep_options options = {.paths = &c->swept_paths,
                                       .is_persistent = true,
                                       .is_known = is_nothing_of_waits,
                                       .runs = WAIT_RUNS,
                                       .progress = tell_sweeping,
                                       .found = note_waits,
                                       .context = c};
    profile->weights[GMD_OP_FAULT] = 0;
    profile->interleaves = false;
    profile->request_count = (uint32_t)gmd_min(profile->request_count, WAIT_REQUESTS);
    for (uint64_t i = 0; i < WAIT_SEQUENCES && !campaign_is_over(c); i++) {
        gmd_trace trace;
        if (i == WAIT_SEQUENCES / 2) {
            take_turns(c, profile, WAIT_REQUESTS, seed);
        }
        if (campaign_generate(c, profile, gmd_random_derive(seed, i), &trace)) {
            sweep(c, &trace, &c->runner, &options);
        }
        gmd_trace_free(&trace);
    }
}

void campaign_sweep(campaign *c, gmd_profile *profile, uint64_t seed, bool others)
{
    profile->request_count =
        profile->request_count < SWEEP_REQUESTS ? profile->request_count : SWEEP_REQUESTS;
    profile->weights[GMD_OP_FAULT] = profile->weights[GMD_OP_BUDGET] = 0;
    profile->interleaves = false; /* a call that is to fail is found by its number */
    for (uint64_t i = 0; i < SWEEPS_A_ROUND && !campaign_is_over(c); i++) {
        gmd_trace trace;
        if (i == SWEEPS_A_ROUND / 2) {
            take_turns(c, profile, SWEEP_ROOM, seed);
        }
        if (campaign_generate(c, profile, gmd_random_derive(seed, i), &trace)) {
            if (others && i + 1 == SWEEPS_A_ROUND) {
                sweep_others(c, &trace);
            } else {
                sweep_memory(c, &trace);
            }
        }
        gmd_trace_free(&trace);
    }
}
