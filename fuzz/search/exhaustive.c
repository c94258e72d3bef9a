#include "gmd_exhaustive.h"

#include "gmd_clock.h"
#include "gmd_hash.h"
#include "gmd_size.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 64

/* --- sets of numbers ---------------------------------------------------------------------- */

typedef struct number_set { /* zero-initialised: empty */
    uint64_t *slots;        /* 0: free */
    size_t count, capacity; /* a power of two */
} number_set;

static uint64_t *slot_of(uint64_t *slots, size_t capacity, uint64_t number)
{
    size_t at = (size_t)(gmd_hash_number(number) >> 20) & (capacity - 1);
    while (slots[at] && slots[at] != number) {
        at = (at + 1) & (capacity - 1);
    }
    return &slots[at];
}

static bool has_number(const number_set *set, uint64_t number)
{
    return set->capacity && *slot_of(set->slots, set->capacity, number);
}

static bool grow(number_set *set)
{
    size_t capacity = set->capacity ? set->capacity * 2 : 1024;
    uint64_t *slots = calloc(capacity, sizeof *slots);
    if (!slots) {
        return false;
    }
    for (size_t i = 0; i < set->capacity; i++) {
        if (set->slots[i]) {
            *slot_of(slots, capacity, set->slots[i]) = set->slots[i];
        }
    }
    free(set->slots);
    set->slots = slots;
    set->capacity = capacity;
    return true;
}

/* `number` is not 0. False: no host memory. */
static bool add_number(number_set *set, uint64_t number)
{
    if (set->count * 2 >= set->capacity && !grow(set)) {
        return false;
    }
    uint64_t *slot = slot_of(set->slots, set->capacity, number);
    set->count += *slot == 0;
    *slot = number;
    return true;
}

static void free_numbers(number_set *set)
{
    free(set->slots);
    *set = (number_set){0};
}

/* --- the search --------------------------------------------------------------------------- */

typedef struct search {
    const gmd_exhaustive_options *options;
    gmd_findings *findings;
    gmd_exhaustive_result *result;
    gmd_runner runner;
    gmd_schedule schedule;
    gmd_persistent_input traces[BATCH];
    gmd_sequence sequences[BATCH];
    size_t count;   /* in the batch */
    number_set cut; /* beginnings that show a defect, under this schedule */
    number_set states;
    bool is_first; /* of the schedules */
    double start;
    gmd_status status;
    gmd_error *error;
} search;

static bool fail_for_memory(search *s)
{
    s->status = gmd_fail(s->error, GMD_NO_MEMORY, "no host memory for sequences");
    return false;
}

static bool is_over(const search *s)
{
    const gmd_exhaustive_options *o = s->options;
    return s->status != GMD_OK || (o->is_interrupted && *o->is_interrupted) ||
           gmd_options_interrupted(o->run) ||
           (o->seconds > 0 && gmd_clock_s() - s->start >= o->seconds);
}

static void cut(search *s, size_t at)
{
    s->result->cut++;
    if (!add_number(&s->cut, gmd_sequence_key(&s->sequences[at]))) {
        fail_for_memory(s);
    }
}

/* What a suspect shows by itself. */
static void confirm(search *s, size_t at)
{
    const gmd_trace *trace = &s->traces[at].trace;
    const gmd_outcome *outcome;
    s->status = gmd_runner_run(&s->runner, trace, &outcome, s->error);
    if (s->status == GMD_OK && outcome->violation_count) {
        gmd_violation violation = outcome->violations[0]; /* the next run overwrites it */
        s->status = gmd_findings_add(s->findings, &s->runner, trace, &violation, s->result->runs, 0,
                                     s->error);
        cut(s, at);
    } else if (s->status == GMD_OK && outcome->verdict == GMD_ERROR) {
        s->status = gmd_fail(s->error, outcome->error_status, "%s", outcome->error);
    } else if (s->status == GMD_OK) {
        s->result->unconfirmed++;
    }
}

/* A hang that was found before takes too long to be seen again. */
static void take_suspect(search *s, size_t at, const gmd_outcome *suspicion)
{
    const gmd_violation *v = &suspicion->violations[0];
    if (suspicion->violation_count && gmd_is_hang(v) && gmd_findings_hit(s->findings, v)) {
        cut(s, at);
    } else {
        confirm(s, at);
    }
}

static bool note_states(search *s, const gmd_persistent_result *persistent)
{
    for (size_t i = 0; i < persistent->passed; i++) {
        if (persistent->states[i] && !add_number(&s->states, persistent->states[i])) {
            return fail_for_memory(s);
        }
    }
    s->result->states = s->states.count;
    return true;
}

static void tell(search *s)
{
    s->result->seconds = gmd_clock_s() - s->start;
    s->result->requests = s->runner.requests;
    s->result->known = s->runner.known;
    if (s->options->progress) {
        s->options->progress(s->options->context, s->result, s->findings->count);
    }
}

static bool run_batch(search *s)
{
    for (size_t at = 0; at < s->count && !is_over(s);) {
        gmd_persistent_result persistent;
        s->status = gmd_runner_run_persistent(&s->runner, &s->traces[at], s->count - at,
                                              &persistent, s->error);
        if (s->status != GMD_OK || !note_states(s, &persistent)) {
            break;
        }
        uint64_t runs = persistent.passed + persistent.is_suspect;
        s->result->runs += runs;
        s->result->sequences += s->is_first ? runs : 0;
        at += persistent.passed;
        if (persistent.is_suspect) {
            take_suspect(s, at++, persistent.outcome);
        }
    }
    s->count = 0;
    tell(s);
    return !is_over(s);
}

static bool visit(void *context, const gmd_sequence *sequence)
{
    search *s = context;
    gmd_trace *trace = &s->traces[s->count].trace;
    trace->count = sequence->length;
    gmd_sequence_requests(&s->result->alphabet, sequence, trace->requests);
    s->sequences[s->count++] = *sequence;
    return s->count < BATCH || run_batch(s);
}

static bool enter(void *context, const gmd_sequence *beginning)
{
    search *s = context;
    return !has_number(&s->cut, gmd_sequence_key(beginning));
}

/* --- what all sequences share -------------------------------------------------------------- */

static gmd_status prepare_trace(search *s, gmd_persistent_input *input)
{
    uint32_t index;
    gmd_request none = {.op = GMD_OP_EMPTY_CACHE};
    gmd_trace *t = &input->trace;
    input->probed_refusal = GMD_LAST_REQUEST;
    gmd_trace_init(t);
    t->conditions.device_count = 1;
    t->conditions.capacity_bytes = s->options->run->conditions.capacity_bytes;
    t->conditions.schedule = s->schedule;
    gmd_status status = GMD_OK;
    for (uint32_t i = 0; i < GMD_SEQUENCE_MAX && status == GMD_OK; i++) {
        status = gmd_trace_append(t, &none, s->error);
        status = status == GMD_OK ? gmd_names_add(&t->blocks, NULL, &index, s->error) : status;
    }
    for (uint32_t i = 0; i < s->result->alphabet.stream_count && status == GMD_OK; i++) {
        status = gmd_names_add(&t->streams, NULL, &index, s->error);
    }
    for (uint32_t i = 0; i < s->result->alphabet.pool_count && status == GMD_OK; i++) {
        status = gmd_names_add(&t->pools, NULL, &index, s->error);
    }
    return status;
}

/* All lengths under the schedule at hand. */
static void search_schedule(search *s)
{
    const gmd_sequence_visitor visitor = {.visit = visit, .enter = enter, .context = s};
    for (size_t i = 0; i < BATCH && s->status == GMD_OK; i++) {
        s->status = prepare_trace(s, &s->traces[i]);
    }
    for (uint32_t length = 1; length <= s->options->depth && !is_over(s); length++) {
        s->result->length = length;
        if (gmd_sequences_each(&s->result->alphabet, length, &visitor)) {
            run_batch(s);
        }
    }
    for (size_t i = 0; i < BATCH; i++) {
        s->traces[i].trace.conditions.schedule = (gmd_schedule){0}; /* it is the search's */
        gmd_trace_free(&s->traces[i].trace);
    }
    free_numbers(&s->cut);
}

static void search_all(search *s)
{
    static const gmd_schedule_kind kinds[GMD_EXHAUSTIVE_SCHEDULES] = {
        GMD_SCHEDULE_LAZY, GMD_SCHEDULE_EAGER, GMD_SCHEDULE_TIMED};
    static const char *const names[GMD_EXHAUSTIVE_SCHEDULES] = {"lazy", "eager", "timed"};
    const gmd_schedule *given = &s->options->run->conditions.schedule;
    bool is_given = gmd_schedule_is_stated(given);
    for (size_t i = 0; i < (is_given ? 1 : GMD_EXHAUSTIVE_SCHEDULES) && !is_over(s); i++) {
        s->is_first = i == 0;
        s->schedule = is_given ? *given : (gmd_schedule){.kind = kinds[i]};
        s->result->schedule = is_given ? "given" : names[i];
        search_schedule(s);
    }
}

static gmd_status choose_alphabet(search *s)
{
    gmd_alphabet *a = &s->result->alphabet;
    gmd_pool_abilities pools = {0};
    gmd_alphabet_for(a, s->options->run->conditions.capacity_bytes);
    gmd_status status =
        s->options->with_pools ? gmd_runner_find_pools(&s->runner, &pools, s->error) : GMD_OK;
    a->pool_count = pools.are_there ? GMD_ALPHABET_POOLS : 0;
    a->has_captures = pools.are_there && s->options->with_captures;
    for (uint32_t length = 1; length <= s->options->depth; length++) {
        s->result->unreduced += gmd_sequences_unreduced(a, length);
    }
    return status;
}

gmd_status gmd_exhaustive(const gmd_exhaustive_options *options, gmd_findings *findings,
                          gmd_exhaustive_result *result, gmd_error *error)
{
    *result = (gmd_exhaustive_result){0};
    search *s = calloc(1, sizeof *s);
    if (!s) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for sequences");
    }
    s->options = options;
    s->findings = findings;
    s->result = result;
    s->start = gmd_clock_s();
    s->error = error;
    gmd_run_options run = gmd_options_hurried(options->run, GMD_EXHAUSTIVE_HANG_S);
    run.conditions.schedule = (gmd_schedule){0}; /* the traces state it */
    gmd_runner_init(&s->runner, &run);
    s->status = choose_alphabet(s);
    search_all(s);
    result->is_complete = s->status == GMD_OK && !is_over(s);
    bool wants_end = options->is_interrupted && *options->is_interrupted;
    result->is_interrupted =
        s->status == GMD_INTERRUPTED || wants_end || gmd_options_interrupted(options->run);
    s->status = s->status == GMD_INTERRUPTED ? GMD_OK : s->status;
    result->judged = s->runner.judged;
    tell(s);
    gmd_runner_close(&s->runner);
    free_numbers(&s->states);
    gmd_status status = s->status;
    free(s);
    return status;
}

const char *gmd_exhaustive_statement(const gmd_exhaustive_result *r, size_t findings,
                                     uint32_t depth, char *text, size_t size)
{
    char verdict[80] = "nothing found";
    if (findings) {
        snprintf(verdict, sizeof verdict, "%zu found", findings);
    }
    int used = snprintf(text, size,
                        "%s%" PRIu64 " sequences of up to %" PRIu32
                        " requests over this alphabet (%" PRIu64
                        " before symmetry reduction), %" PRIu64 " runs, %" PRIu64 " states: %s",
                        r->is_complete ? "" : "not complete: ", r->sequences, depth, r->unreduced,
                        r->runs, r->states, verdict);
    if (r->cut && used > 0 && (size_t)used < size) {
        snprintf(text + used, size - (size_t)used,
                 "; what begins with the %" PRIu64 " runs that show it was left out", r->cut);
    }
    return text;
}
