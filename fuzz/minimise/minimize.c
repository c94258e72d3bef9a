#include "gmd_minimize.h"

#include "minimizer.h"

#include "gmd_clock.h"
#include "gmd_pool_state.h"
#include "gmd_repeats.h"

#include <stdlib.h>
#include <string.h>

#define ROUND_MAX 12

/* A block's name may be used again after its free: each lifetime gets an entry of its own, so that
 * one can be dropped without the other. */
static gmd_status rename_lifetimes(gmd_trace *trace, uint32_t *now, bool *was_used,
                                   gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < trace->count && status == GMD_OK; i++) {
        gmd_request *r = &trace->requests[i];
        if (!gmd_op_has_block(r->op)) {
            continue;
        }
        if (gmd_op_has(r->op, GMD_FIELD_NEW_BLOCK)) {
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
        uint32_t *streams[2];
        size_t named = gmd_request_streams(&trace->requests[i], streams);
        for (size_t k = 0; k < named; k++) {
            count = *streams[k] >= count ? *streams[k] + 1 : count;
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

/* Those that come in turns are to have numbers, so that the text can tell them in one line. */
static bool has_numbered_blocks(const gmd_trace *trace)
{
    enum { TURNS = 8 };
    for (size_t i = 0; i < trace->count; i++) {
        gmd_repeat r = gmd_repeat_at(trace, i, &(gmd_repeat_search){.least = TURNS});
        for (uint32_t k = 0; k < r.length && r.turns >= TURNS; k++) {
            if (r.steps[k].block) {
                return true;
            }
        }
        i += r.turns >= TURNS ? r.turns * r.length - 1 : 0;
    }
    return false;
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
        if (gmd_op_has(r->op, GMD_FIELD_NEW_BLOCK)) {
            as[r->block] = next++;
        }
        if (gmd_op_has_block(r->op)) {
            r->block = as[r->block];
        }
    }
    bool has_letters = next <= 26 && !has_numbered_blocks(trace);
    for (uint32_t i = 0; i < trace->blocks.count; i++) {
        char name[] = {(char)('a' + i), '\0'};
        if (has_letters && i < next) {
            name_block(&trace->blocks, i, name);
        } else {
            free(trace->blocks.items[i]);
            trace->blocks.items[i] = NULL;
        }
    }
    trace->blocks.count = next < trace->blocks.count ? next : trace->blocks.count;
    forget_names(&trace->streams);
    forget_names(&trace->threads);
    free(as);
}

static void reduce(minimizer *m)
{
    bool has_changed = true;
    for (int round = 0; has_changed && round < ROUND_MAX && !m->is_over; round++) {
        has_changed = minimizer_untangle(m);
        has_changed = minimizer_count(m) || has_changed;
        has_changed = minimizer_drop(m) || has_changed;
        has_changed = minimizer_simplify(m) || has_changed;
    }
}

/* The verdict's sentence names blocks: it is said once more with their new names. Where there is no
 * time for that, all keep the names that it has. */
static void name_anew(minimizer *m)
{
    if (minimizer_may_try(m)) {
        rename_blocks(m->best);
        renumber_pools(m->best);
        forget_streams(m->best);
        minimizer_begin(m);
        minimizer_try(m, m->best->count, NULL);
    }
}

/* Not even the case as it is showed the cause. */
static gmd_status refuse(const gmd_runner *runner, const gmd_identity *cause, gmd_error *error)
{
    char text[GMD_IDENTITY_TEXT];
    gmd_identity_print(cause, text);
    return gmd_options_interrupted(runner->given)
               ? gmd_fail(error, GMD_INTERRUPTED, "interrupted before the case was tried")
               : gmd_fail(error, GMD_BAD_INPUT, "the requests do not end with this verdict: %s",
                          text);
}

/* What a warm process does not show, one with second runs may (determinism, reference). */
static bool shows_cause(minimizer *m, size_t count)
{
    minimizer_begin(m);
    if (minimizer_try(m, count, NULL)) {
        return true;
    }
    if (m->runner->own || m->is_over) {
        return false;
    }
    m->status = gmd_runner_isolate(m->runner, true, m->error);
    return m->status == GMD_OK && minimizer_try(m, count, NULL);
}

gmd_status gmd_minimize(gmd_trace *trace, gmd_runner *runner, const gmd_identity *cause,
                        const gmd_minimize_limits *limits, gmd_minimized *result, gmd_error *error)
{
    *result = (gmd_minimized){0};
    minimizer m = {.best = trace,
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
    bool was_isolated = runner->own;
    if (shows_cause(&m, trace->count)) {
        reduce(&m);
        result->is_complete = !m.is_over;
        name_anew(&m);
        status = m.status;
    } else {
        status = m.status != GMD_OK ? m.status : refuse(runner, cause, error);
    }
    (void)gmd_runner_isolate(runner, was_isolated, NULL);
    free(m.spare);
    return status;
}
