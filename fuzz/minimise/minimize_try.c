/* minimize_try.c - one candidate: whether it shows the cause, too. Since one with fewer requests
 * needs another interleaving, several are tried for each. */
#include "gmd_log.h"
#include "minimizer.h"

#include "gmd_clock.h"
#include "gmd_pool_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS_TRIED 24 /* for each candidate, all in one process */

void minimizer_begin(minimizer *m)
{
    memcpy(m->spare, m->best->requests, m->best->count * sizeof *m->spare);
}

static bool is_at_limit(const minimizer *m)
{
    const gmd_minimize_limits *l = m->limits;
    return gmd_options_interrupted(m->runner->given) ||
           (l->tries && m->result->tries >= l->tries) ||
           (l->seconds > 0 && gmd_clock_s() - m->start >= l->seconds);
}

/* What comes after the violation cannot matter, except where threads are interleaved: there it may
 * have been before. */
static void accept(minimizer *m, size_t count, const gmd_violation *violation)
{
    m->result->violation = *violation;
    bool is_interleaved = m->best->conditions.interleave.kind != GMD_SCHEDULE_UNSTATED;
    if (!is_interleaved && violation->request + 1 < count) {
        count = (size_t)violation->request + 1;
    }
    memcpy(m->best->requests, m->spare, count * sizeof *m->spare);
    m->best->count = count;
    if (m->limits->progress) {
        m->limits->progress(m->limits->context, count, m->result->tries);
    }
}

static gmd_status take_over_header(gmd_trace *to, const gmd_conditions *header, gmd_error *error)
{
    gmd_conditions copy;
    gmd_status status = gmd_conditions_copy(&copy, header, error);
    if (status == GMD_OK) {
        gmd_conditions_free(&to->conditions);
        to->conditions = copy;
    }
    return status;
}

/* A candidate that the device or the allocator refuses is only a bad candidate. */
static const gmd_violation *run_candidate(minimizer *m, const gmd_trace *candidate)
{
    const gmd_outcome *outcome;
    gmd_error error;
    m->result->tries++;
    gmd_status status = gmd_runner_run(m->runner, candidate, &outcome, &error);
    m->is_over = m->is_over || status == GMD_INTERRUPTED; /* with the smallest so far */
    bool is_first = m->result->tries == 1; /* the case as it is: it must be possible to run that */
    if (status == GMD_OK && is_first && outcome->verdict == GMD_ERROR &&
        !outcome->violation_count) {
        status = gmd_fail(&error, outcome->error_status, "%s", outcome->error);
    }
    if (status != GMD_OK && status != GMD_BAD_INPUT && status != GMD_INTERRUPTED) {
        m->is_over = true;
        m->status = gmd_fail(m->error, status, "%s", error.text);
    }
    const gmd_violation *found = status == GMD_OK ? gmd_cause_find(outcome, m->cause) : NULL;
    GMD_LOG(FUZZ, "minimiser, try %" PRIu64 ": %zu requests, %s", m->result->tries,
            candidate->count, found ? "the same cause" : "not the cause");
    return found;
}

static gmd_trace make_candidate(const minimizer *m, size_t count, const gmd_conditions *header)
{
    gmd_trace candidate = *m->best; /* borrows all of it */
    candidate.conditions = header ? *header : m->best->conditions;
    candidate.requests = m->spare;
    candidate.count = count;
    candidate.threads.count = 1; /* those that a reader of the file would know */
    for (size_t i = 0; i < count; i++) {
        if (m->spare[i].thread >= candidate.threads.count) {
            candidate.threads.count = m->spare[i].thread + 1u;
        }
    }
    return candidate;
}

/* A reader of the file would refuse what no pool allows where it stands. */
static bool is_in_order(const minimizer *m, size_t count)
{
    gmd_pool_state pools;
    memset(&pools, 0, m->best->pools.count ? sizeof pools : 0);
    for (size_t i = 0; i < count && m->best->pools.count; i++) {
        if (gmd_op_is_on_pool(m->spare[i].op) && gmd_pool_state_note(&pools, &m->spare[i])) {
            return false;
        }
    }
    return true;
}

static bool is_seeded(const gmd_trace *t)
{
    return gmd_schedule_is_seeded(&t->conditions.interleave) && t->threads.count > 1;
}

/* The first of the inputs from `at` on that seems to show the cause; `count`: none does. */
static size_t first_that_shows(minimizer *m, const gmd_persistent_input *inputs, size_t at,
                               size_t count)
{
    while (at < count) {
        gmd_persistent_result persistent;
        gmd_error error;
        if (gmd_runner_run_persistent(m->runner, &inputs[at], count - at, &persistent, &error) !=
            GMD_OK) {
            return count;
        }
        at += persistent.passed;
        if (persistent.is_suspect && gmd_cause_find(persistent.outcome, m->cause)) {
            return at;
        }
        if (!persistent.is_suspect && !persistent.passed) {
            return count;
        }
        at += persistent.is_suspect;
    }
    return count;
}

/* An interleaving under which the candidate seems to show the cause. */
static bool find_seed(minimizer *m, const gmd_trace *candidate, uint64_t *seed)
{
    gmd_persistent_input inputs[SEEDS_TRIED];
    if (!is_seeded(candidate)) {
        return false;
    }
    for (uint64_t i = 0; i < SEEDS_TRIED; i++) {
        inputs[i] = (gmd_persistent_input){.trace = *candidate};
        inputs[i].trace.conditions.interleave.seed = i;
    }
    *seed = first_that_shows(m, inputs, 0, SEEDS_TRIED);
    return *seed < SEEDS_TRIED;
}

bool minimizer_may_try(const minimizer *m)
{
    return !m->is_over && !is_at_limit(m);
}

bool minimizer_try(minimizer *m, size_t count, const gmd_conditions *header)
{
    if (!is_in_order(m, count)) {
        return false;
    }
    if (!minimizer_may_try(m)) {
        m->is_over = true;
        return false;
    }
    gmd_trace candidate = make_candidate(m, count, header);
    const gmd_violation *found = run_candidate(m, &candidate);
    bool is_first = m->result->tries == 1; /* of the case as it is */
    uint64_t seed;
    if (!found && !m->is_over && !is_first && find_seed(m, &candidate, &seed)) {
        candidate.conditions.interleave.seed = seed;
        found = run_candidate(m, &candidate);
    }
    if (!found) {
        return false;
    }
    accept(m, count, found);
    if (header || m->best->conditions.interleave.seed != candidate.conditions.interleave.seed) {
        m->status = take_over_header(m->best, &candidate.conditions, m->error);
        m->is_over = m->status != GMD_OK;
    }
    return true;
}

/* An allocation takes all requests on its block with it, and a begin what its pool no longer
 * allows.
 */
bool minimizer_try_without(minimizer *m, const bool *drops_request, bool *drops_block)
{
    const gmd_trace *t = m->best;
    gmd_pool_state pools;
    memset(&pools, 0, t->pools.count ? sizeof pools : 0);
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        if (drops_request[i] && gmd_op_has(r->op, GMD_FIELD_NEW_BLOCK)) {
            drops_block[r->block] = true;
        }
        bool is_dropped = drops_request[i] || (gmd_op_has_block(r->op) && drops_block[r->block]) ||
                          (gmd_op_is_on_pool(r->op) && gmd_pool_state_note(&pools, r));
        if (!is_dropped) {
            m->spare[kept++] = *r;
        }
    }
    return kept < t->count && minimizer_try(m, kept, NULL);
}
