#include "campaign.h"
#include "gmd_log.h"

#include "gmd_clock.h"
#include "gmd_generate.h"

#include <stdio.h>

void campaign_tell(campaign *c, const char *doing)
{
    gmd_search_status *s = &c->result->status;
    s->runs = c->sequences;
    s->requests = c->runner.requests;
    s->known = c->runner.known;
    c->result->troubles = c->runner.troubles;
    s->seconds = gmd_clock_s() - c->start;
    s->findings = c->findings->count;
    s->inputs = c->options->corpus ? c->options->corpus->count : 0;
    s->features = c->options->run->recording.features
                      ? atomic_load(&c->options->run->recording.features->count)
                      : 0;
    s->fresh_seconds = gmd_clock_s() - c->last_fresh;
    s->doing = doing;
    if (c->options->progress) {
        c->options->progress(c->options->context, s);
    }
}

bool campaign_is_interrupted(const campaign *c)
{
    const gmd_search_options *o = c->options;
    return (o->is_interrupted && *o->is_interrupted) || gmd_options_interrupted(o->run);
}

bool campaign_is_done(const campaign *c)
{
    const gmd_search_options *o = c->options;
    return (o->ends_when_found && c->findings->count) || (o->runs && c->sequences >= o->runs) ||
           (o->seconds > 0 && gmd_clock_s() - c->start >= o->seconds);
}

bool campaign_is_over(const campaign *c)
{
    return c->status != GMD_OK || campaign_is_interrupted(c) || campaign_is_done(c);
}

void campaign_cannot_run(campaign *c, gmd_status status, const char *reason)
{
    if (status != GMD_BAD_INPUT) {
        c->status = c->status == GMD_OK ? gmd_fail(c->error, status, "%s", reason) : c->status;
    } else if (!c->result->refused++) {
        snprintf(c->result->refusal, sizeof c->result->refusal, "%s", reason);
    }
}

void campaign_note_error(campaign *c, const gmd_outcome *outcome)
{
    if (outcome->is_cut_off) {
        c->result->cut_off++;
    } else {
        campaign_cannot_run(c, outcome->error_status, outcome->error);
    }
}

#define MINIMIZE_SHARE 4 /* of the campaign's time, for a case that is found near its end */

/* How long a case may be minimised now. */
static double minimize_seconds(const campaign *c)
{
    double all = c->options->seconds, left = all - (gmd_clock_s() - c->start);
    double given = c->findings->minimize_seconds;
    double most = left > all / MINIMIZE_SHARE ? left : all / MINIMIZE_SHARE;
    return all > 0 && most < given ? most : given;
}

void campaign_add_finding(campaign *c, const gmd_trace *trace, const gmd_violation *violation)
{
    gmd_violation copy = *violation; /* the next run overwrites it */
    double deadline_s = c->runner.deadline_s, given_s = c->findings->minimize_seconds;
    c->runner.deadline_s = 0; /* the minimiser has a time of its own */
    c->findings->minimize_seconds = minimize_seconds(c);
    c->status = gmd_findings_add(c->findings, &c->runner, trace, &copy, c->sequences,
                                 gmd_clock_s() - c->start, c->error);
    c->findings->minimize_seconds = given_s;
    c->runner.deadline_s = deadline_s;
}

/* What a run that ended badly, by itself, tells. False: the round is not worth going on with. */
static bool take_outcome(campaign *c, const gmd_trace *trace, const gmd_outcome *outcome,
                         const gmd_violation *suspicion)
{
    if (outcome->violation_count) {
        campaign_add_finding(c, trace, &outcome->violations[0]);
        return c->status == GMD_OK;
    }
    if (outcome->verdict == GMD_ERROR) {
        campaign_note_error(c, outcome);
        return false;
    }
    if (!c->result->unconfirmed++) {
        c->result->unconfirmed_first = *suspicion;
    }
    return true;
}

#define OTHER_ORDERS 1000

/* What an allocator did in a process before changes how many yield points a request has, and with
 * them what a seed does: by itself, another seed may show what was seen. */
static gmd_status run_in_orders(campaign *c, gmd_trace *trace, const gmd_outcome **outcome,
                                gmd_error *error)
{
    gmd_schedule *order = &trace->conditions.interleave;
    uint64_t first = order->seed;
    gmd_status status = gmd_runner_run(&c->runner, trace, outcome, error);
    for (uint64_t i = 1; i <= OTHER_ORDERS && status == GMD_OK && gmd_schedule_is_seeded(order) &&
                         (*outcome)->verdict == GMD_PASS && !campaign_is_over(c);
         i++) {
        order->seed = first + i;
        status = gmd_runner_run(&c->runner, trace, outcome, error);
    }
    return status;
}

/* A sequence that was suspected counts for what it shows by itself. */
static bool run_sequence(campaign *c, gmd_trace *trace, const gmd_violation *suspicion)
{
    const gmd_outcome *outcome;
    gmd_error error;
    gmd_status status = run_in_orders(c, trace, &outcome, &error);
    if (status != GMD_OK) {
        campaign_cannot_run(c, status, error.text);
        return false;
    }
    return take_outcome(c, trace, outcome, suspicion);
}

bool campaign_generate(campaign *c, const gmd_profile *profile, uint64_t seed, gmd_trace *trace)
{
    gmd_trace_init(trace);
    c->status = gmd_generate(profile, &c->options->space, seed, trace, c->error);
    return c->status == GMD_OK;
}

/* --- threads that spin ------------------------------------------------------------------- */

/* Each turn that a thread loses to the watchdog takes as long as a thousand requests. */
#define SPINNING_SEQUENCES UINT64_C(4)
#define SPINNING_LAPSES    UINT64_C(2) /* in each, on average */

static void note_lapses(campaign *c, bool interleaves, const gmd_persistent_result *persistent)
{
    gmd_search_result *r = c->result;
    if (!interleaves) {
        return;
    }
    r->interleaved += persistent->passed;
    r->lapses += persistent->lapses;
    if (!r->spins_since && r->lapses >= SPINNING_SEQUENCES * SPINNING_LAPSES &&
        r->lapses >= r->interleaved * SPINNING_LAPSES) {
        r->spins_since = c->sequences;
    }
}

/* --- batches ----------------------------------------------------------------------------- */

#define FRESH_REQUESTS 4096 /* longer ones cost more than what is made of them shows */

/* What brought the allocator into a new state is worth going on from. */
static void take_fresh(campaign *c, const batch *b, size_t first,
                       const gmd_persistent_result *persistent)
{
    gmd_corpus *corpus = c->options->corpus;
    for (size_t i = 0; i < persistent->passed && corpus && c->status == GMD_OK; i++) {
        const gmd_trace *trace = &b->traces[first + i].trace;
        if (persistent->fresh[i] && trace->count <= FRESH_REQUESTS) {
            c->last_fresh = gmd_clock_s();
            c->status = gmd_corpus_add(corpus, trace, persistent->fresh[i], c->error);
        }
    }
}

static void count_batch(campaign *c, const gmd_persistent_result *persistent)
{
    c->sequences += persistent->passed + persistent->is_suspect;
    c->result->faults_planted += persistent->faults_planted;
    c->result->faults_unfired += persistent->faults_unfired;
}

/* The next of the batch was suspected: it counts for what it shows by itself. */
static bool look_again(campaign *c, batch *b, const gmd_outcome *outcome)
{
    gmd_violation suspicion = {.oracle = "progress", .message = "it did not end"};
    if (outcome->violation_count) {
        suspicion = outcome->violations[0]; /* the next run overwrites it */
    }
    bool is_known = gmd_findings_hit(c->findings, &suspicion);
    bool goes_on = is_known || run_sequence(c, &b->traces[b->next].trace, &suspicion);
    b->known += is_known;
    b->next++;
    campaign_tell(c, "searching");
    return goes_on;
}

bool campaign_run_batch(campaign *c, bool interleaves, batch *b)
{
    bool goes_on = true;
    GMD_LOG(FUZZ, "round: %zu sequences%s", b->count - b->next,
            interleaves ? ", threads interleaved" : "");
    while (b->next < b->count && goes_on && !campaign_is_over(c)) {
        gmd_persistent_result persistent;
        gmd_error error;
        size_t at = b->next;
        gmd_status status = gmd_runner_run_persistent(&c->runner, &b->traces[at], b->count - at,
                                                      &persistent, &error);
        if (status != GMD_OK) {
            b->next = b->count;
            campaign_cannot_run(c, status, error.text);
            return false;
        }
        count_batch(c, &persistent);
        note_lapses(c, interleaves, &persistent);
        take_fresh(c, b, at, &persistent);
        b->next += persistent.passed;
        if (interleaves && c->result->spins_since && !b->traces[at].expects_lapses) {
            return false; /* the rest of the round would go on like this */
        }
        c->result->cut_off += persistent.outcome->is_cut_off;
        if (persistent.is_suspect) {
            goes_on = look_again(c, b, persistent.outcome);
        }
    }
    return goes_on;
}
