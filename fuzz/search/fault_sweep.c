#include "gmd_fault_sweep.h"

#include "gmd_fault_error.h"
#include "gmd_hash.h"
#include "gmd_size.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES    (2 * GMD_MIB)
#define BATCH         32
#define OUT_OF_MEMORY 2 /* in both APIs */

/* --- one run ----------------------------------------------------------------------------- */

typedef struct sweep {
    const gmd_trace *trace;
    gmd_runner *runner;
    const gmd_sweep_options *options;
    gmd_sweep_result *result;
    gmd_trace tried; /* the case with one request more */
    gmd_persistent_input waiting[BATCH];
    size_t waiting_count;
    uint64_t planned;
    bool is_over;
    gmd_error *error;
} sweep;

/* The case with a request more. What it expects to be served may be refused now. */
static void insert(sweep *s, size_t at, const gmd_request *request)
{
    const gmd_request *from = s->trace->requests;
    memcpy(s->tried.requests, from, at * sizeof *from);
    s->tried.requests[at] = *request;
    memcpy(s->tried.requests + at + 1, from + at, (s->trace->count - at) * sizeof *from);
    s->tried.count = s->trace->count + 1;
    for (size_t i = 0; i < s->tried.count; i++) {
        if (s->tried.requests[i].op == GMD_OP_ALLOC) {
            s->tried.requests[i].expect = GMD_EXPECT_ANY;
        }
    }
}

/* The device or the allocator may refuse a run with a fault, and not gmd or the machine. */
static gmd_status note_error(sweep *s, const gmd_outcome *outcome)
{
    bool is_cut_off = outcome->is_cut_off;
    s->is_over = s->is_over || is_cut_off;
    s->result->is_cut_off = s->result->is_cut_off || is_cut_off;
    s->result->is_complete = s->result->is_complete && !is_cut_off;
    s->result->not_judged += !is_cut_off;
    bool is_refused = is_cut_off || outcome->error_status == GMD_BAD_INPUT;
    return is_refused ? GMD_OK : gmd_fail(s->error, outcome->error_status, "%s", outcome->error);
}

static gmd_status run_alone(sweep *s, const gmd_trace *trace)
{
    const gmd_outcome *outcome;
    gmd_status status = gmd_runner_run(s->runner, trace, &outcome, s->error);
    if (status != GMD_OK) {
        return status;
    }
    if (outcome->verdict == GMD_ERROR && !outcome->violation_count) {
        return note_error(s, outcome);
    }
    if (outcome->violation_count && s->options->found &&
        !s->options->found(s->options->context, trace, &outcome->violations[0])) {
        s->is_over = true;
    }
    return GMD_OK;
}

static bool is_known(const sweep *s, const gmd_outcome *outcome)
{
    return outcome->violation_count && s->options->is_known &&
           s->options->is_known(s->options->context, &outcome->violations[0]);
}

/* Runs those that wait; each suspect ends the process that it ran in. */
static gmd_status run_waiting(sweep *s)
{
    gmd_status status = GMD_OK;
    for (size_t at = 0; at < s->waiting_count && status == GMD_OK && !s->is_over;) {
        gmd_persistent_result persistent;
        status = gmd_runner_run_persistent(s->runner, &s->waiting[at], s->waiting_count - at,
                                           &persistent, s->error);
        at += persistent.passed;
        if (status == GMD_OK && persistent.outcome->is_cut_off) {
            status = note_error(s, persistent.outcome);
        }
        if (status == GMD_OK && persistent.is_suspect) {
            status = is_known(s, persistent.outcome) ? GMD_OK : run_alone(s, &s->waiting[at].trace);
            at++;
        }
    }
    while (s->waiting_count) {
        gmd_trace_free(&s->waiting[--s->waiting_count].trace);
    }
    return status;
}

static gmd_status run_one(sweep *s, const char *what)
{
    if (s->options->progress) {
        s->options->progress(s->options->context, s->result->runs, s->planned, what);
    }
    s->result->runs++;
    if (!s->options->is_persistent) {
        return run_alone(s, &s->tried);
    }
    gmd_persistent_input *t = &s->waiting[s->waiting_count];
    gmd_status status = gmd_trace_copy(&t->trace, &s->tried, s->error);
    if (status != GMD_OK) {
        return status;
    }
    t->probed_refusal = s->result->runs % 4; /* in every fourth run none */
    return ++s->waiting_count == BATCH ? run_waiting(s) : GMD_OK;
}

/* The function's entry in the names of the tried case. */
static gmd_status find_function(sweep *s, const char *name, uint32_t *index)
{
    const gmd_names *names = &s->tried.functions;
    for (*index = 0; *index < names->count; ++*index) {
        if (names->items[*index] && strcmp(names->items[*index], name) == 0) {
            return GMD_OK;
        }
    }
    return gmd_names_add(&s->tried.functions, name, index, s->error);
}

static gmd_status fail_call(sweep *s, const gmd_logged_call *call, int code)
{
    gmd_request fault = {
        .op = GMD_OP_FAULT, .count = call->ordinal, .error = (uint32_t)code, .thread = 0};
    gmd_status status = find_function(s, call->function, &fault.function);
    /* only this call fails; then each later one, too */
    uint8_t variants = s->options->others_only || s->options->paths ? 1 : 2;
    for (uint8_t every = 0; every < variants && status == GMD_OK && !s->is_over; every++) {
        fault.every_later = every;
        insert(s, call->request, &fault);
        status = run_one(s, call->function);
    }
    return status;
}

/* --- all of them ------------------------------------------------------------------------- */

static bool is_swept(const sweep *s, const gmd_logged_call *call)
{
    if (s->options->paths) {
        return call->request < s->trace->count && gmd_fault_is_wait(call->function);
    }
    bool is_left_out =
        s->options->others_only && gmd_fault_error_of(call->function, true) == OUT_OF_MEMORY;
    return call->request < s->trace->count && !is_left_out &&
           gmd_fault_error_of(call->function, s->options->memory_only);
}

static gmd_status fail_each(sweep *s, const gmd_logged_call *calls, size_t count)
{
    /* never 0, even where a number of runs is the largest there is */
    size_t swept = 0, limit = s->options->runs ? s->options->runs / 2 | 1 : SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        swept += is_swept(s, &calls[i]);
    }
    size_t stride = swept > limit ? (swept + limit - 1) / limit : 1, seen = 0;
    s->planned = 2 * (uint64_t)(swept / stride);
    s->result->is_complete = s->result->is_complete && stride == 1;
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < count && status == GMD_OK && !s->is_over; i++) {
        if (is_swept(s, &calls[i]) && seen++ % stride == 0) {
            status = fail_call(s, &calls[i],
                               gmd_fault_error_of(calls[i].function, s->options->memory_only));
        }
    }
    return status;
}

/* What led to the call, in one number: the kind of request, and the functions that it called
 * before, the same many times over as once. */
static uint32_t path_to(const sweep *s, const gmd_logged_call *calls, size_t at)
{
    size_t first = at;
    while (first && calls[first - 1].request == calls[at].request) {
        first--;
    }
    uint64_t hash = gmd_hash_add(1, s->trace->requests[calls[at].request].op);
    for (size_t i = first; i <= at; i++) {
        if (i == first || strcmp(calls[i].function, calls[i - 1].function) != 0) {
            hash = gmd_hash_bytes(hash, calls[i].function, strlen(calls[i].function));
        }
    }
    return (uint32_t)(hash % GMD_SWEPT_PATHS);
}

/* The calls that few like them have failed before, up to the limit of runs. */
static gmd_status fail_rarest(sweep *s, const gmd_logged_call *calls, size_t count)
{
    uint16_t *failed = s->options->paths->counts;
    gmd_status status = GMD_OK;
    for (uint32_t least = 1; least && least <= UINT16_MAX && status == GMD_OK; least *= 2) {
        for (size_t i = 0; i < count && status == GMD_OK && !s->is_over; i++) {
            uint32_t path = is_swept(s, &calls[i]) ? path_to(s, calls, i) : GMD_SWEPT_PATHS;
            if (path == GMD_SWEPT_PATHS || failed[path] >= least) {
                continue;
            }
            if (s->result->runs == s->options->runs) {
                return status;
            }
            failed[path]++;
            status = fail_call(s, &calls[i], gmd_fault_error_of(calls[i].function, false));
        }
    }
    return status;
}

/* From no memory at all up to what the case needs, a page more each time. */
static gmd_status try_budgets(sweep *s, uint64_t peak_bytes)
{
    uint64_t pages = peak_bytes / PAGE_BYTES,
             most = s->options->runs ? s->options->runs / 4 + 1 : 256;
    uint64_t stride = pages > most ? (pages + most - 1) / most : 1;
    gmd_status status = GMD_OK;
    for (uint64_t page = 0; page < pages && status == GMD_OK && !s->is_over; page += stride) {
        gmd_request budget = {.op = GMD_OP_BUDGET, .bytes = page * PAGE_BYTES};
        insert(s, 0, &budget);
        status = run_one(s, "budget");
    }
    return status;
}

static gmd_status open_sweep(sweep *s)
{
    gmd_status status = gmd_trace_copy(&s->tried, s->trace, s->error);
    for (size_t i = 0; i < 2 && status == GMD_OK; i++) { /* room for one request more */
        status = gmd_trace_append(&s->tried, &(gmd_request){.op = GMD_OP_EMPTY_CACHE}, s->error);
    }
    return status;
}

gmd_status gmd_sweep(const gmd_trace *trace, gmd_runner *runner, const gmd_sweep_options *options,
                     gmd_sweep_result *result, gmd_error *error)
{
    *result = (gmd_sweep_result){.is_complete = true};
    sweep s = {
        .trace = trace, .runner = runner, .options = options, .result = result, .error = error};
    const gmd_outcome *outcome;
    const gmd_logged_call *shared_calls;
    size_t count;
    gmd_status status =
        gmd_runner_log(runner, trace, &outcome, &shared_calls, &count, &result->is_complete, error);
    if (status != GMD_OK) {
        return status;
    }
    if (outcome->verdict == GMD_ERROR && outcome->is_cut_off) {
        return note_error(&s, outcome);
    }
    if (outcome->verdict == GMD_ERROR) {
        result->case_is_refused = outcome->error_status == GMD_BAD_INPUT;
        return gmd_fail(error, outcome->error_status, "%s", outcome->error);
    }
    if (outcome->violation_count) {
        result->case_fails = true;
        result->violation = outcome->violations[0];
        return GMD_OK;
    }
    result->calls = count;
    uint64_t peak = outcome->has_stats ? outcome->stats.reserved_bytes_peak : 0;
    gmd_logged_call *calls = malloc((count + 1) * sizeof *calls);
    if (!calls) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %zu calls", count);
    }
    memcpy(calls, shared_calls, count * sizeof *calls);
    status = open_sweep(&s);
    if (status == GMD_OK) {
        status = options->paths ? fail_rarest(&s, calls, count) : fail_each(&s, calls, count);
    }
    if (status == GMD_OK && options->has_budgets && !options->others_only && !options->paths &&
        peak != GMD_STAT_UNKNOWN) {
        status = try_budgets(&s, peak);
    }
    gmd_status persistent = run_waiting(&s);
    status = status == GMD_OK ? persistent : status;
    free(calls);
    gmd_trace_free(&s.tried);
    return status;
}
