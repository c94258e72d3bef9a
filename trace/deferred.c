#include "deferred.h"

#include "address_table.h"
#include "free_runs.h"

#include <stdint.h>
#include <stdlib.h>

enum { HELPER_MAX = 64 };

/* Of events, counted in steps of the clock. */
#define NOT_YET 0
#define NEVER   (UINT64_MAX / GMD_DEFERRED_STEP_NS / 2)

typedef struct planner {
    const gmd_snapshot *snapshot;
    const char *name;
    deferred_plan *plan;
    address_table waiting; /* address -> its free_requested */
    size_t *completion;    /* by free_requested: its free_completed; 0: there is none */
    size_t *completed;     /* by free_requested: the allocation that completed it */
    uint64_t *step;        /* by allocation: the clock's step before it */
    uint64_t steps;
    struct {
        uint64_t until; /* steps: the end of its work */
        size_t last;    /* the free_completed of the last block that waits for it */
    } helpers[HELPER_MAX];
    gmd_error *error;
} planner;

static bool is_prompt(const gmd_snapshot *s, size_t requested)
{
    const gmd_snapshot_event *e = &s->events[requested];
    return requested + 1 < s->event_count && e[1].action == GMD_ACTION_FREE_COMPLETED &&
           e[1].address == e->address;
}

/* The allocation in which a free was completed: after its completion, others of the same moment and
 * the device's part come first. 0: there is none. */
static size_t completing_allocation(const gmd_snapshot *s, size_t at)
{
    while (at < s->event_count &&
           (s->events[at].action == GMD_ACTION_FREE_COMPLETED || event_takes(&s->events[at]))) {
        at++;
    }
    bool is_allocation = at < s->event_count && (s->events[at].action == GMD_ACTION_ALLOC ||
                                                 s->events[at].action == GMD_ACTION_OOM);
    return is_allocation ? at : 0;
}

static gmd_status note_completion(planner *p, size_t at)
{
    const gmd_snapshot *s = p->snapshot;
    uint32_t requested;
    if (!address_table_take(&p->waiting, s->events[at].address, &requested)) {
        return GMD_OK; /* prompt, or of a block from before the recording */
    }
    size_t allocation = completing_allocation(s, at);
    if (!allocation) {
        return gmd_fail(p->error, GMD_BAD_INPUT,
                        "%s: event %zu: a free that waited for another stream was completed by a "
                        "retry or an empty_cache(), which a replay cannot bring about: --check "
                        "cannot judge it",
                        p->name, at);
    }
    p->completion[requested] = at;
    p->completed[requested] = allocation;
    p->plan->events[allocation].is_awaited = true;
    return GMD_OK;
}

static gmd_status pair_up(planner *p)
{
    const gmd_snapshot *s = p->snapshot;
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < s->event_count && status == GMD_OK; i++) {
        const gmd_snapshot_event *e = &s->events[i];
        if (e->action == GMD_ACTION_FREE_REQUESTED && e->address && !is_prompt(s, i)) {
            p->plan->events[i].is_deferred = true;
            address_table_put(&p->waiting, e->address, (uint32_t)i);
        } else if (e->action == GMD_ACTION_FREE_COMPLETED && e->address) {
            status = note_completion(p, i);
        }
    }
    for (size_t i = 0; i < s->event_count; i++) {
        p->step[i] = p->plan->events[i].is_awaited ? ++p->steps : NOT_YET;
    }
    return status;
}

/* A stream's work is completed in order, so a block can wait for a stream whose last block was
 * completed before it: of these the latest, which leaves the others to the less patient. */
static gmd_status choose_helper(planner *p, size_t completion, uint32_t *helper)
{
    uint32_t count = p->plan->helper_count, best = count;
    for (uint32_t h = 0; h < count; h++) {
        if (p->helpers[h].last <= completion &&
            (best == count || p->helpers[h].last > p->helpers[best].last)) {
            best = h;
        }
    }
    if (best == HELPER_MAX) {
        return gmd_fail(p->error, GMD_BAD_INPUT,
                        "%s: frees waited for more than %d streams: --check cannot judge it",
                        p->name, HELPER_MAX);
    }
    p->plan->helper_count += best == count;
    *helper = best;
    return GMD_OK;
}

static gmd_status lay_out(planner *p)
{
    uint64_t now = 0;
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < p->snapshot->event_count && status == GMD_OK; i++) {
        deferred_event *e = &p->plan->events[i];
        now = e->is_awaited ? p->step[i] : now;
        if (!e->is_deferred) {
            continue;
        }
        size_t completion = p->completion[i] ? p->completion[i] : SIZE_MAX;
        status = choose_helper(p, completion, &e->helper);
        if (status == GMD_OK) {
            uint64_t until = p->completion[i] ? p->step[p->completed[i]] : NEVER;
            uint64_t idle_from = p->helpers[e->helper].until;
            e->duration_ns = (until - (idle_from > now ? idle_from : now)) * GMD_DEFERRED_STEP_NS;
            p->helpers[e->helper].until = until;
            p->helpers[e->helper].last = completion;
        }
    }
    return status;
}

gmd_status deferred_plan_make(deferred_plan *plan, const gmd_snapshot *snapshot, const char *name,
                              gmd_error *error)
{
    size_t count = snapshot->event_count + 1;
    *plan = (deferred_plan){.events = calloc(count, sizeof *plan->events)};
    planner p = {.snapshot = snapshot,
                 .name = name,
                 .plan = plan,
                 .completion = calloc(count, sizeof *p.completion),
                 .completed = calloc(count, sizeof *p.completed),
                 .step = calloc(count, sizeof *p.step),
                 .error = error};
    gmd_status status = GMD_OK;
    if (!plan->events || !p.completion || !p.completed || !p.step ||
        !address_table_make(&p.waiting, count)) {
        status = gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", name);
    } else {
        status = pair_up(&p);
        status = status == GMD_OK ? lay_out(&p) : status;
    }
    address_table_free(&p.waiting);
    free(p.completion);
    free(p.completed);
    free(p.step);
    if (status != GMD_OK) {
        deferred_plan_free(plan);
    }
    return status;
}

void deferred_plan_free(deferred_plan *plan)
{
    free(plan->events);
    *plan = (deferred_plan){0};
}
