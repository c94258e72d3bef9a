#include "deferred.h"

#include "free_runs.h"
#include "gmd_address_table.h"
#include "gmd_min.h"

#include <stdint.h>
#include <stdlib.h>

enum { HELPER_MAX = 64 };

/* Times are counted in steps of the clock. */
#define NEVER (UINT64_MAX / DEFERRED_STEP_NS / 2)

typedef struct waiting_free {
    size_t completion; /* its free_completed; 0: there is none */
    uint64_t from;     /* when it was asked for */
    uint64_t until;    /* when the work that it waits for ends; NEVER: not known yet */
    size_t before;     /* of its device and open, too, 1 more than the event; 0: none */
} waiting_free;

/* A place in the events that only goes forward. */
typedef struct cursor {
    size_t next, request; /* of a device, at or behind what was asked for last */
} cursor;

typedef struct planner {
    const gmd_snapshot *snapshot;
    const free_runs *runs;
    size_t next_run; /* the first that ends later */
    bool has_late;
    const char *name;
    deferred_plan *plan;
    gmd_address_table waiting;    /* address -> its free_requested */
    waiting_free *frees;          /* by free_requested */
    size_t *requested;            /* by free_completed: 1 more than its free_requested; 0: none */
    size_t open[GMD_MAX_DEVICES]; /* free_requested events whose work has no end yet: the last, as
                                     waiting_free.before; and those that have one since */
    size_t open_count[GMD_MAX_DEVICES];
    cursor cursors[GMD_MAX_DEVICES];
    size_t pending[GMD_MAX_DEVICES]; /* frees that are not complete */
    uint64_t now;
    struct {
        uint64_t until; /* the end of its work */
        size_t last;    /* the free_completed of the last block that waits for it */
    } helpers[HELPER_MAX];
    gmd_error *error;
} planner;

static bool is_completed_next(const gmd_snapshot *s, size_t requested)
{
    const gmd_snapshot_event *e = &s->events[requested];
    return requested + 1 < s->event_count && e[1].action == GMD_ACTION_FREE_COMPLETED &&
           e[1].address == e->address;
}

/* Whether the job has used blocks on other streams, for certain. */
static bool has_late_frees(const gmd_snapshot *s)
{
    for (size_t i = 0; i < s->event_count; i++) {
        if (s->events[i].action == GMD_ACTION_FREE_REQUESTED && !is_completed_next(s, i)) {
            return true;
        }
    }
    return false;
}

/* It matters whether a free waited where a retry or an empty_cache() completed it; an allocation
 * that found the work done might as well have had the block at once. */
static bool is_prompt(const gmd_snapshot *s, size_t requested)
{
    const gmd_snapshot_event *e = &s->events[requested];
    if (!is_completed_next(s, requested)) {
        return false;
    }
    size_t at = requested + 2;
    while (at < s->event_count && s->events[at].action == GMD_ACTION_FREE_COMPLETED &&
           s->events[at].device == e->device) {
        at++;
    }
    bool is_settled = at < s->event_count && s->events[at].device == e->device &&
                      (event_gives(&s->events[at]) || s->events[at].action == GMD_ACTION_OOM);
    return !is_settled || !free_was_late(s, requested + 1);
}

/* --- when the work ends -------------------------------------------------------------------- */

/* What completed frees that had waited. */
typedef enum completer {
    BY_POLL,        /* an allocation found their work done */
    BY_SETTLE,      /* a retry, or an empty_cache() that is known, waited for it */
    BY_EMPTY_CACHE, /* which waited for it and gave nothing back */
    BY_NOTHING,
} completer;

static size_t next_of_device(planner *p, size_t at, uint8_t device)
{
    const gmd_snapshot *s = p->snapshot;
    size_t *next = &p->cursors[device].next;
    *next = gmd_max(*next, at);
    while (*next < s->event_count && s->events[*next].device != device) {
        ++*next;
    }
    return *next;
}

static bool is_request_of(const gmd_snapshot_event *e, uint8_t device)
{
    return e->device == device && (e->action == GMD_ACTION_ALLOC || e->action == GMD_ACTION_OOM);
}

/* The request after events of the allocator's own. */
static size_t request_after(planner *p, size_t at, uint8_t device)
{
    const gmd_snapshot *s = p->snapshot;
    size_t *request = &p->cursors[device].request;
    *request = gmd_max(*request, at);
    while (*request < s->event_count && !is_request_of(&s->events[*request], device)) {
        ++*request;
    }
    return *request;
}

/* A retry collects garbage and releases oversize blocks before it waits for pending frees, and
 * gives back all that is left after it. */
static completer completer_in_run(const free_run *run, size_t at, bool is_all)
{
    bool is_within = run->first < at;
    bool is_retry = run->is_whole || run->has_waited;
    return is_within || run->verdict == RUN_EMPTY_CACHE || (is_retry && is_all) ? BY_SETTLE
                                                                                : BY_POLL;
}

/* Frees were completed right before event `at`; is_all: none waits any longer. A retry and an
 * empty_cache() wait for all. */
static completer completer_of(planner *p, size_t at, uint8_t device, bool is_all)
{
    const gmd_snapshot *s = p->snapshot;
    while (p->next_run < p->runs->count && p->runs->items[p->next_run].end <= at) {
        p->next_run++;
    }
    size_t next = next_of_device(p, at, device);
    const gmd_snapshot_event *e = next < s->event_count ? &s->events[next] : NULL;
    if (e && event_gives(e) && p->next_run < p->runs->count) {
        return completer_in_run(&p->runs->items[p->next_run], next, is_all);
    }
    if (e && (e->action == GMD_ACTION_ALLOC || event_takes(e))) {
        return BY_POLL;
    }
    if (e && e->action == GMD_ACTION_OOM) {
        return is_all ? BY_SETTLE : BY_POLL;
    }
    return is_all ? BY_EMPTY_CACHE : BY_NOTHING;
}

static void open_free(planner *p, size_t requested)
{
    uint8_t device = p->snapshot->events[requested].device;
    p->frees[requested] = (waiting_free){.from = p->now, .until = NEVER, .before = p->open[device]};
    p->open[device] = requested + 1;
    p->open_count[device]++;
    p->pending[device]++;
}

static void end_one(planner *p, size_t requested)
{
    waiting_free *f = &p->frees[requested];
    if (f->until == NEVER) {
        f->until = p->now;
        p->open_count[p->snapshot->events[requested].device]--;
    }
}

/* All work that has no end ends now, in the step that begins: of one device. */
static void end_all(planner *p, uint8_t device)
{
    p->now += p->open_count[device] > 0;
    for (size_t open = p->open[device]; open; open = p->frees[open - 1].before) {
        end_one(p, open - 1);
    }
    p->open[device] = 0;
}

/* The work of the frees that were completed in events [from, to) ends in the step that begins. */
static void end_of(planner *p, size_t from, size_t to)
{
    p->now++;
    for (size_t i = from; i < to; i++) {
        if (p->requested[i]) {
            end_one(p, p->requested[i] - 1);
        }
    }
}

/* Takes the frees that were completed from event *at on, one after the other. */
static gmd_status note_completions(planner *p, size_t *at)
{
    const gmd_snapshot *s = p->snapshot;
    size_t from = *at, any = 0;
    uint8_t device = s->events[from].device;
    for (; *at < s->event_count && s->events[*at].action == GMD_ACTION_FREE_COMPLETED &&
           s->events[*at].device == device;
         ++*at) {
        uint32_t requested;
        if (s->events[*at].address &&
            gmd_address_table_take(&p->waiting, s->events[*at].address, &requested)) {
            p->frees[requested].completion = *at;
            p->requested[*at] = (size_t)requested + 1;
            p->pending[device]--;
            any++;
        }
    }
    if (!any) {
        return GMD_OK; /* prompt, or of blocks from before the recording */
    }
    completer by = completer_of(p, *at, device, p->pending[device] == 0);
    if (by == BY_NOTHING) {
        return gmd_fail(p->error, GMD_BAD_INPUT,
                        "%s: event %zu: frees that waited for other streams were completed, but "
                        "not all, and nothing follows that does so",
                        p->name, from);
    }
    if (by != BY_POLL) { /* who waits for the work ends it */
        p->plan->events[*at - 1].is_emptied = by == BY_EMPTY_CACHE;
        end_all(p, device);
        return GMD_OK;
    }
    size_t allocation = request_after(p, *at, device);
    if (allocation < s->event_count) {
        p->plan->events[allocation].is_awaited = true;
        end_of(p, from, *at);
    }
    return GMD_OK;
}

/* Goes through the events as the replay will, the clock with it. */
static gmd_status time_frees(planner *p)
{
    const gmd_snapshot *s = p->snapshot;
    for (size_t i = 0; i < s->event_count;) {
        const gmd_snapshot_event *e = &s->events[i];
        if (e->action == GMD_ACTION_FREE_COMPLETED) {
            gmd_status status = note_completions(p, &i);
            if (status != GMD_OK) {
                return status;
            }
            continue;
        }
        if (p->has_late && e->action == GMD_ACTION_FREE_REQUESTED && e->address &&
            !is_prompt(s, i)) {
            p->plan->events[i].is_deferred = true;
            open_free(p, i);
            gmd_address_table_put(&p->waiting, e->address, (uint32_t)i);
        } else if (event_gives(e)) {
            end_all(p, e->device); /* cudaFree and unmapping wait for the device */
        }
        i++;
    }
    return GMD_OK;
}

/* --- the streams ---------------------------------------------------------------------------- */

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
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < p->snapshot->event_count && status == GMD_OK; i++) {
        deferred_event *e = &p->plan->events[i];
        const waiting_free *f = &p->frees[i];
        if (!e->is_deferred) {
            continue;
        }
        size_t completion = f->completion ? f->completion : SIZE_MAX;
        status = choose_helper(p, completion, &e->helper);
        if (status == GMD_OK) {
            uint64_t idle_from = p->helpers[e->helper].until;
            uint64_t begin = gmd_max(idle_from, f->from);
            e->duration_ns = (f->until > begin ? f->until - begin : 0) * DEFERRED_STEP_NS;
            p->helpers[e->helper].until = f->until;
            p->helpers[e->helper].last = completion;
        }
    }
    return status;
}

gmd_status deferred_plan_make(deferred_plan *plan, const gmd_snapshot *snapshot,
                              const free_runs *runs, const char *name, gmd_error *error)
{
    size_t count = snapshot->event_count + 1;
    *plan = (deferred_plan){.events = calloc(count, sizeof *plan->events)};
    planner p = {.snapshot = snapshot,
                 .runs = runs,
                 .has_late = has_late_frees(snapshot),
                 .name = name,
                 .plan = plan,
                 .frees = calloc(count, sizeof *p.frees),
                 .requested = calloc(count, sizeof *p.requested),
                 .error = error};
    gmd_status status = GMD_OK;
    if (!plan->events || !p.frees || !p.requested || !gmd_address_table_make(&p.waiting, count)) {
        status = gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", name);
    } else {
        status = time_frees(&p);
        status = status == GMD_OK ? lay_out(&p) : status;
    }
    gmd_address_table_free(&p.waiting);
    free(p.frees);
    free(p.requested);
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
