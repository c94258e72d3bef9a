#include "minimize_internal.h"

#include "gmd_clock.h"
#include "gmd_pool_book.h"

#include <stdlib.h>
#include <string.h>

#define ROUND_MAX 12

void gmd_minimizer_begin(gmd_minimizer *m)
{
    memcpy(m->spare, m->best->requests, m->best->count * sizeof *m->spare);
}

static bool is_at_limit(const gmd_minimizer *m)
{
    const gmd_minimize_limits *l = m->limits;
    return (l->tries && m->result->tries >= l->tries) ||
           (l->seconds > 0 && gmd_clock_s() - m->start >= l->seconds);
}

/* What comes after the violation cannot matter, except where threads are interleaved: there it may
 * have been before. */
static void accept(gmd_minimizer *m, size_t count, const gmd_violation *violation)
{
    m->result->violation = *violation;
    bool is_interleaved = m->best->interleave.kind != GMD_SCHEDULE_UNSTATED;
    if (!is_interleaved && violation->request + 1 < count) {
        count = (size_t)violation->request + 1;
    }
    memcpy(m->best->requests, m->spare, count * sizeof *m->spare);
    m->best->count = count;
    if (m->limits->progress) {
        m->limits->progress(m->limits->context, count, m->result->tries);
    }
}

static gmd_status take_over_header(gmd_trace *to, const gmd_trace *header, gmd_error *error)
{
    gmd_trace copy;
    gmd_status status = gmd_trace_copy_header(&copy, header, error);
    if (status == GMD_OK) {
        free(to->conf);
        gmd_schedule_free(&to->schedule);
        gmd_schedule_free(&to->interleave);
        to->conf = copy.conf;
        to->schedule = copy.schedule;
        to->interleave = copy.interleave;
        to->device_count = copy.device_count;
        to->capacity_bytes = copy.capacity_bytes;
    }
    return status;
}

/* A candidate that the device or the allocator refuses is only a bad candidate. */
static const gmd_violation *run_candidate(gmd_minimizer *m, const gmd_trace *candidate)
{
    const gmd_outcome *outcome;
    gmd_error error;
    m->result->tries++;
    gmd_status status = gmd_runner_run(m->runner, candidate, &outcome, &error);
    if (status != GMD_OK && status != GMD_BAD_INPUT) {
        m->is_over = true;
        m->status = gmd_fail(m->error, status, "%s", error.text);
    }
    return status == GMD_OK ? gmd_cause_find(outcome, m->cause) : NULL;
}

static gmd_trace make_candidate(const gmd_minimizer *m, size_t count, const gmd_trace *header)
{
    gmd_trace candidate = header ? *header : *m->best; /* borrows all of it */
    candidate.blocks = m->best->blocks;
    candidate.streams = m->best->streams;
    candidate.threads = m->best->threads;
    candidate.functions = m->best->functions;
    candidate.pools = m->best->pools;
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
static bool is_in_order(const gmd_minimizer *m, size_t count)
{
    gmd_pool_book pools;
    memset(&pools, 0, m->best->pools.count ? sizeof pools : 0);
    for (size_t i = 0; i < count && m->best->pools.count; i++) {
        if (gmd_op_is_on_pool(m->spare[i].op) && gmd_pool_book_note(&pools, &m->spare[i])) {
            return false;
        }
    }
    return true;
}

bool gmd_minimizer_try(gmd_minimizer *m, size_t count, const gmd_trace *header)
{
    if (!is_in_order(m, count)) {
        return false;
    }
    if (m->is_over || is_at_limit(m)) {
        m->is_over = true;
        return false;
    }
    gmd_trace candidate = make_candidate(m, count, header);
    const gmd_violation *found = run_candidate(m, &candidate);
    bool is_first = m->result->tries == 1; /* of the case as it is */
    uint64_t seed;
    if (!found && !m->is_over && !is_first && gmd_minimizer_find_seed(m, &candidate, &seed)) {
        candidate.interleave.seed = seed;
        found = run_candidate(m, &candidate);
    }
    if (!found) {
        return false;
    }
    accept(m, count, found);
    if (header || m->best->interleave.seed != candidate.interleave.seed) {
        m->status = take_over_header(m->best, &candidate, m->error);
        m->is_over = m->status != GMD_OK;
    }
    return true;
}

/* A block's name may be used again after its free: each lifetime gets an entry of its own, so that
 * one can be dropped without the other. */
static gmd_status rename_lifetimes(gmd_trace *trace, uint32_t *now, bool *was_used,
                                   gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < trace->count && status == GMD_OK; i++) {
        gmd_request *r = &trace->requests[i];
        if (r->op > GMD_OP_RECORD) {
            continue;
        }
        if (r->op == GMD_OP_ALLOC) {
            uint32_t name = r->block;
            now[name] = name;
            if (was_used[name]) {
                status = gmd_names_add(&trace->blocks, NULL, &now[name], error);
            }
            was_used[name] = true;
        }
        r->block = now[r->block];
    }
    return status;
}

static gmd_status separate_lifetimes(gmd_trace *trace, gmd_error *error)
{
    size_t count = (size_t)trace->blocks.count + 1;
    uint32_t *now = malloc(count * sizeof *now);
    bool *was_used = calloc(count, sizeof *was_used);
    gmd_status status = now && was_used ? rename_lifetimes(trace, now, was_used, error)
                                        : gmd_fail(error, GMD_NO_MEMORY, "no host memory");
    free(now);
    free(was_used);
    return status;
}

/* Blocks a, b, c... and streams and threads in the order in which they come: the result of a search
 * says nothing by its names. */
static void forget_names(gmd_names *names)
{
    for (uint32_t i = 1; i < names->count; i++) {
        free(names->items[i]);
        names->items[i] = NULL;
    }
}

static void name_block(gmd_names *names, uint32_t index, const char *name)
{
    char *copy = strdup(name);
    if (copy) { /* else it keeps the name that it has: no less right */
        free(names->items[index]);
        names->items[index] = copy;
    }
}

/* Streams that are not named any more would be listed in the header. */
static void forget_streams(gmd_trace *trace)
{
    uint32_t count = 1;
    for (size_t i = 0; i < trace->count; i++) {
        const gmd_request *r = &trace->requests[i];
        if (gmd_request_names_stream(r) && r->stream >= count) {
            count = r->stream + 1;
        }
        if (r->op == GMD_OP_WAIT && r->other_stream >= count) {
            count = r->other_stream + 1;
        }
    }
    while (trace->streams.count > count) {
        free(trace->streams.items[--trace->streams.count]);
    }
}

/* By the order of their first requests, without those that are gone. */
static void renumber_pools(gmd_trace *trace)
{
    uint32_t next = 0, as[GMD_MAX_POOLS];
    memset(as, 0xff, sizeof as);
    for (size_t i = 0; i < trace->count; i++) {
        gmd_request *r = &trace->requests[i];
        if (gmd_op_is_on_pool(r->op)) {
            uint32_t *pool = &as[r->pool % GMD_MAX_POOLS];
            *pool = *pool == UINT32_MAX ? next++ : *pool;
            r->pool = *pool;
        }
    }
    for (uint32_t i = 0; i < trace->pools.count; i++) {
        free(trace->pools.items[i]);
        trace->pools.items[i] = NULL;
    }
    trace->pools.count = next < trace->pools.count ? next : trace->pools.count;
}

static void rename_blocks(gmd_trace *trace)
{
    uint32_t next = 0;
    uint32_t *as = malloc(((size_t)trace->blocks.count + 1) * sizeof *as);
    if (!as) {
        return;
    }
    for (size_t i = 0; i < trace->count; i++) {
        gmd_request *r = &trace->requests[i];
        if (r->op == GMD_OP_ALLOC) {
            as[r->block] = next++;
        }
        if (r->op <= GMD_OP_RECORD) {
            r->block = as[r->block];
        }
    }
    for (uint32_t i = 0; i < trace->blocks.count; i++) {
        char name[] = {(char)('a' + i), '\0'};
        if (next <= 26 && i < 26) {
            name_block(&trace->blocks, i, name);
        } else {
            free(trace->blocks.items[i]);
            trace->blocks.items[i] = NULL;
        }
    }
    forget_names(&trace->streams);
    forget_names(&trace->threads);
    free(as);
}

static void reduce(gmd_minimizer *m)
{
    bool has_changed = true;
    for (int round = 0; has_changed && round < ROUND_MAX && !m->is_over; round++) {
        has_changed = gmd_minimizer_untangle(m);
        has_changed = gmd_minimizer_drop(m) || has_changed;
        has_changed = gmd_minimizer_simplify(m) || has_changed;
    }
}

gmd_status gmd_minimize(gmd_trace *trace, gmd_runner *runner, const gmd_identity *cause,
                        const gmd_minimize_limits *limits, gmd_minimized *result, gmd_error *error)
{
    *result = (gmd_minimized){0};
    gmd_minimizer m = {.best = trace,
                       .runner = runner,
                       .cause = cause,
                       .limits = limits,
                       .result = result,
                       .start = gmd_clock_s(),
                       .error = error};
    gmd_status status = separate_lifetimes(trace, error);
    m.spare = malloc((trace->count + 1) * sizeof *m.spare);
    if (status != GMD_OK || !m.spare) {
        free(m.spare);
        return status != GMD_OK ? status : gmd_fail(error, GMD_NO_MEMORY, "no host memory");
    }
    gmd_minimizer_begin(&m);
    if (!gmd_minimizer_try(&m, trace->count, NULL)) {
        char text[GMD_IDENTITY_TEXT];
        gmd_identity_print(cause, text);
        free(m.spare);
        return m.status != GMD_OK ? m.status
                                  : gmd_fail(error, GMD_BAD_INPUT,
                                             "the requests do not end with this verdict: %s", text);
    }
    reduce(&m);
    result->is_complete = !m.is_over;
    free(m.spare);
    rename_blocks(trace);
    renumber_pools(trace);
    forget_streams(trace);
    return m.status;
}
