#include "free_runs.h"

#include "memory_limit.h"
#include "recorded_cache.h"

#include "gmd_grow.h"
#include "gmd_min.h"

#include <stdlib.h>
#include <string.h>

/* --- the rules ---------------------------------------------------------------------------- */

run_verdict run_judge(const run_facts *f)
{
    if (f->knows_calls) {
        return f->is_call ? RUN_EMPTY_CACHE : RUN_OF_REQUEST;
    }
    if (f->is_between_pages) {
        return RUN_OF_REQUEST;
    }
    if (f->follower == FOLLOWED_BY_NOTHING || f->continues) {
        return RUN_EMPTY_CACHE;
    }
    if (f->follower == FOLLOWED_BY_REFUSAL) {
        return f->knows_limit && f->is_all && !f->is_planned ? RUN_EMPTY_CACHE : RUN_OF_REQUEST;
    }
    if (f->would_have_served) {
        return RUN_EMPTY_CACHE;
    }
    if (!f->is_all) {
        return RUN_OF_REQUEST;
    }
    if (f->knows_retries) {
        bool is_planned = f->is_planned && !f->plan_has_retry;
        return f->has_retried || is_planned ? RUN_OF_REQUEST : RUN_EMPTY_CACHE;
    }
    if (!f->is_planned) {
        return RUN_EMPTY_CACHE;
    }
    return f->plan_has_retry ? RUN_EITHER : RUN_OF_REQUEST;
}

/* --- frees that waited ------------------------------------------------------------------------ */

enum { WAITING_US = 4 };

bool free_was_late(const gmd_snapshot *s, size_t completed)
{
    const gmd_snapshot_event *e = &s->events[completed];
    bool is_next =
        completed && e[-1].action == GMD_ACTION_FREE_REQUESTED && e[-1].address == e->address;
    return !is_next || e->time_us >= e[-1].time_us + WAITING_US;
}

/* --- going through a history -------------------------------------------------------------- */

typedef struct walk {
    const gmd_snapshot *snapshot;
    const gmd_history_hints *hints;
    const gmd_recorded_settings *settings;
    free_runs *runs;
    recorded_cache cache;
    uint64_t reserved[GMD_MAX_DEVICES];
    uint64_t reserved_before; /* the memory that the request to come has taken */
    size_t next_op;           /* of the operations; SIZE_MAX: they do not fit the history */
    bool has_calls;           /* of empty_cache(), among them */
    uint64_t *settled;        /* addresses of blocks, ascending: of the run that is surveyed */
    size_t settled_count, settled_capacity;
    size_t stretch_end; /* of the events that give memory back which were looked at last... */
    size_t last_given[GMD_MAX_DEVICES]; /* ...and where each device does so last among them */
} walk;

static bool note(walk *w, size_t at)
{
    const gmd_snapshot_event *e = &w->snapshot->events[at];
    uint64_t *reserved = &w->reserved[e->device];
    if (event_takes(e)) {
        *reserved += e->size;
    } else if (event_gives(e)) { /* one from before the recording counts for 0 */
        *reserved -= gmd_min(e->size, *reserved);
    }
    bool is_late = e->action == GMD_ACTION_FREE_COMPLETED && free_was_late(w->snapshot, at);
    return recorded_cache_note(&w->cache, e, is_late);
}

static size_t after_completions(const gmd_snapshot *s, size_t at, uint8_t device)
{
    while (at < s->event_count && s->events[at].action == GMD_ACTION_FREE_COMPLETED &&
           s->events[at].device == device) {
        at++; /* a retry settles pending frees after a collection, and before the rest */
    }
    return at;
}

/* Behind the last event that gives memory back; `*gives`: how many do. */
static size_t end_of_run(const gmd_snapshot *s, size_t first, size_t *gives)
{
    uint8_t device = s->events[first].device;
    size_t end = first, at = first;
    *gives = 0;
    while (at < s->event_count && event_gives(&s->events[at]) && s->events[at].device == device) {
        end = at + 1;
        ++*gives;
        at = after_completions(s, end, device);
    }
    return end;
}

/* The request that may have brought the run about: a refused one, or one that got new memory. One
 * that was served from the cache gave nothing back. */
static const gmd_snapshot_event *request_after(const gmd_snapshot *s, size_t at)
{
    size_t end = at;
    while (end < s->event_count && event_takes(&s->events[end])) {
        end++;
    }
    const gmd_snapshot_event *e = end < s->event_count ? &s->events[end] : NULL;
    bool is_request =
        e && (e->action == GMD_ACTION_OOM || (e->action == GMD_ACTION_ALLOC && end > at));
    return is_request ? e : NULL;
}

static bool has_pages(const walk *w, const free_run *run)
{
    return w->snapshot->events[run->first].action == GMD_ACTION_SEGMENT_UNMAP;
}

/* In an expandable segment a retry may find pages enough that frees left which it waited for. */
static bool is_served_by_waiting(const walk *w, const free_run *run)
{
    const gmd_snapshot *s = w->snapshot;
    return has_pages(w, run) && run->first && run->end < s->event_count &&
           s->events[run->end].action == GMD_ACTION_ALLOC &&
           s->events[run->first - 1].action == GMD_ACTION_FREE_COMPLETED &&
           free_was_late(s, run->first - 1);
}

static const gmd_snapshot_event *request_of(const walk *w, const free_run *run)
{
    const gmd_snapshot_event *e = is_served_by_waiting(w, run)
                                      ? &w->snapshot->events[run->end]
                                      : request_after(w->snapshot, run->end);
    return e && e->device == w->snapshot->events[run->first].device ? e : NULL;
}

/* Whether the run gives back these segments, in this order. A plan of more is cut off behind one.
 */
static bool is_run_of(const walk *w, const free_run *run, const cache_plan *plan)
{
    size_t k = 0;
    for (size_t i = run->first; i < run->end; i++) {
        const gmd_snapshot_event *e = &w->snapshot->events[i];
        if (event_gives(e) && (k == plan->count || plan->addresses[k++] != e->address)) {
            return false;
        }
    }
    return k == plan->count;
}

/* --- first pass: what is known without the limit ------------------------------------------ */

static int compare_addresses(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The blocks that were completed right before the run, after they had waited. */
static bool list_settled(walk *w, size_t run_first)
{
    const gmd_snapshot *s = w->snapshot;
    w->settled_count = 0;
    for (size_t i = run_first; i-- > 0 && s->events[i].action == GMD_ACTION_FREE_COMPLETED;) {
        if (!free_was_late(s, i)) {
            continue;
        }
        if (!GMD_GROW(&w->settled, &w->settled_capacity, w->settled_count + 1)) {
            return false;
        }
        w->settled[w->settled_count++] = s->events[i].address;
    }
    if (w->settled_count) {
        qsort(w->settled, w->settled_count, sizeof *w->settled, compare_addresses);
    }
    return true;
}

/* Whether one of these blocks lies in the segment: a retry that waited for it gives the segment
 * back without looking whether it would serve now. */
static bool was_settled(const walk *w, const gmd_snapshot_event *given)
{
    size_t low = 0, high = w->settled_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (w->settled[middle] < given->address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < w->settled_count && w->settled[low] - given->address < given->size;
}

static bool would_have_served(const walk *w, const free_run *run, const gmd_snapshot_event *request)
{
    bool is_small = gmd_recorded_is_small(w->settings, request->size);
    bool knows_limit = w->hints->limit_bytes != 0; /* else an empty_cache() is likelier */
    for (size_t i = run->first; i < run->end; i++) {
        const gmd_snapshot_event *e = &w->snapshot->events[i];
        if (e->action == GMD_ACTION_SEGMENT_FREE && e->stream == request->stream &&
            recorded_cache_is_small(&w->cache, e->address) == is_small &&
            gmd_recorded_serves(w->settings, e->size, request->size) &&
            !(knows_limit && was_settled(w, e))) {
            return true;
        }
    }
    return false;
}

/* Whether all of it is of the request's stream and too large to be split. */
static bool is_oversize(const walk *w, const free_run *run, const gmd_snapshot_event *request)
{
    for (size_t i = run->first; i < run->end; i++) {
        const gmd_snapshot_event *e = &w->snapshot->events[i];
        if (event_gives(e) &&
            (e->stream != request->stream || e->size < w->settings->max_split_bytes)) {
            return false;
        }
    }
    return true;
}

static bool is_call_next(const walk *w)
{
    return w->next_op < w->hints->op_count &&
           w->hints->ops[w->next_op].kind == GMD_TRUTH_EMPTY_CACHE;
}

static bool has_calls(const gmd_history_hints *hints)
{
    for (size_t i = 0; i < hints->op_count; i++) {
        if (hints->ops[i].kind == GMD_TRUTH_EMPTY_CACHE) {
            return true;
        }
    }
    return false;
}

/* Whether the operations have an empty_cache() here, where they have any at all, and the count of
 * retries before and after a request. */
static void read_operations(walk *w, run_facts *facts)
{
    const gmd_truth_op *ops = w->hints->ops;
    facts->knows_calls = w->has_calls && w->next_op < w->hints->op_count;
    facts->is_call = is_call_next(w);
    w->next_op += facts->is_call;
    if (w->next_op < w->hints->op_count) {
        uint64_t before = w->next_op ? ops[w->next_op - 1].retries : 0;
        facts->knows_retries = true;
        facts->has_retried = ops[w->next_op].retries > before;
    }
}

/* The events from `at` on that give memory back, one behind the other: the last of each device. */
static void look_at_stretch(walk *w, size_t at)
{
    const gmd_snapshot *s = w->snapshot;
    if (at < w->stretch_end) {
        return;
    }
    memset(w->last_given, 0, sizeof w->last_given);
    for (; at < s->event_count && event_gives(&s->events[at]); at++) {
        w->last_given[s->events[at].device] = at;
    }
    w->stretch_end = at;
}

/* Whether the device gives something back in the events from `at` on, before anything else comes.
 */
static bool gives_next(walk *w, size_t at, int device)
{
    look_at_stretch(w, at);
    return w->last_given[device] >= at && at < w->stretch_end;
}

/* An empty_cache() goes through all devices in turn: those before the run's have nothing left, and
 * those after it give back what they have right then. */
static bool leaves_other_devices(walk *w, const free_run *run)
{
    int own = w->snapshot->events[run->first].device;
    for (int device = 0; device < (int)w->snapshot->device_count; device++) {
        if (device != own && recorded_cache_has_any(&w->cache, device) &&
            (device < own || !gives_next(w, run->end, device))) {
            return true;
        }
    }
    return false;
}

static bool survey_run(walk *w, free_run *run)
{
    const gmd_snapshot_event *events = w->snapshot->events, *request = request_of(w, run);
    run_facts *f = &run->facts;
    cache_plan all;
    if (!list_settled(w, run->first) ||
        !recorded_cache_plan_all(&w->cache, events[run->first].device, run->gives, &all)) {
        return false;
    }
    run->is_whole = has_pages(w, run) || is_run_of(w, run, &all);
    f->is_all = run->is_whole && !leaves_other_devices(w, run);
    free(all.addresses);
    f->is_between_pages = run->first > 0 && event_takes(&events[run->first - 1]);
    const free_run *before = w->runs->count ? &w->runs->items[w->runs->count - 1] : NULL;
    f->continues = before && before->end == run->first &&
                   events[before->first].device < events[run->first].device;
    if (request) {
        f->follower =
            request->action == GMD_ACTION_OOM ? FOLLOWED_BY_REFUSAL : FOLLOWED_BY_NEW_MEMORY;
        f->would_have_served = would_have_served(w, run, request);
        run->needed = gmd_recorded_segment_size(w->settings, request->size);
        run->is_oversize = is_oversize(w, run, request);
    }
    read_operations(w, f);
    f->knows_retries = f->knows_retries && request;
    return true;
}

static free_run *add_run(free_runs *runs)
{
    if (!GMD_GROW(&runs->items, &runs->capacity, runs->count + 1)) {
        return NULL;
    }
    return &runs->items[runs->count];
}

static bool take_run(walk *w, size_t *at)
{
    free_run *run = add_run(w->runs);
    if (!run) {
        return false;
    }
    *run = (free_run){.first = *at,
                      .device = w->snapshot->events[*at].device,
                      .reserved = w->reserved[w->snapshot->events[*at].device]};
    run->end = end_of_run(w->snapshot, *at, &run->gives);
    if (!survey_run(w, run)) {
        return false;
    }
    w->runs->count++;
    for (; *at < run->end; ++*at) {
        if (!note(w, *at)) {
            return false;
        }
    }
    return true;
}

/* The operations go with the requests one by one, or they are of another history. */
static void match_operation(walk *w, const gmd_snapshot_event *e)
{
    while (is_call_next(w)) { /* which gave nothing back */
        w->next_op++;
    }
    if (w->next_op >= w->hints->op_count) {
        return;
    }
    const gmd_truth_op *op = &w->hints->ops[w->next_op++];
    bool is_same = e->action == GMD_ACTION_ALLOC
                       ? op->kind == GMD_TRUTH_ALLOC && op->address == e->address
                   : e->action == GMD_ACTION_OOM ? op->kind == GMD_TRUTH_OOM
                                                 : op->kind == GMD_TRUTH_FREE;
    w->next_op = is_same ? w->next_op : SIZE_MAX;
}

/* A request that got new memory and collected no garbage, though there was some: no more than the
 * threshold's share of the limit was reserved. */
static void weigh_garbage(walk *w, const gmd_snapshot_event *first_taken)
{
    double threshold = w->settings->gc_threshold;
    bool gave = first_taken > w->snapshot->events && event_gives(first_taken - 1);
    if (threshold <= 0 || w->settings->is_expandable || gave ||
        !recorded_cache_has_garbage(&w->cache, first_taken->device)) {
        return;
    }
    double least = (double)w->reserved_before / threshold;
    if (least < 1e18 && (uint64_t)least > w->runs->at_least) {
        w->runs->at_least = (uint64_t)least;
    }
}

static void weigh(walk *w, size_t at)
{
    const gmd_snapshot_event *e = &w->snapshot->events[at];
    bool has_new = at > 0 && event_takes(e - 1);
    uint64_t needed = gmd_recorded_segment_size(w->settings, e->size), before = w->reserved_before;
    if (!has_new && e->action == GMD_ACTION_OOM) {
        before = w->reserved[e->device];
    }
    uint64_t total = needed > UINT64_MAX - before ? UINT64_MAX : needed + before;
    free_runs *r = w->runs;
    if (e->action == GMD_ACTION_OOM) {
        r->ooms[e->device]++;
        r->below = gmd_min(total, r->below);
    } else if (has_new) {
        r->at_least = gmd_max(total, r->at_least);
    }
}

static bool survey(walk *w)
{
    const gmd_snapshot *s = w->snapshot;
    for (size_t at = 0; at < s->event_count;) {
        const gmd_snapshot_event *e = &s->events[at];
        if (event_gives(e)) {
            if (!take_run(w, &at)) {
                return false;
            }
            continue;
        }
        if (event_takes(e) && (at == 0 || !event_takes(e - 1))) {
            w->reserved_before = w->reserved[e->device];
            weigh_garbage(w, e);
        }
        if (e->action == GMD_ACTION_ALLOC || e->action == GMD_ACTION_OOM) {
            weigh(w, at);
        }
        if (e->action == GMD_ACTION_ALLOC || e->action == GMD_ACTION_OOM ||
            e->action == GMD_ACTION_FREE_REQUESTED) {
            match_operation(w, e);
        }
        if (!note(w, at)) {
            return false;
        }
        at++;
    }
    return true;
}

/* --- second pass: under the limit ---------------------------------------------------------- */

/* What the request gives back under the limit: with the frees right before it completed by itself,
 * or by the retry. */
static bool plan_run(walk *w, free_run *run, const gmd_snapshot_event *request, bool has_waited)
{
    cache_plan plan;
    if (!recorded_cache_plan(&w->cache, request, run->reserved, w->runs->limit_bytes, has_waited,
                             run->gives, &plan)) {
        return false;
    }
    run->facts.plan_has_retry = plan.is_retry;
    run->facts.is_planned = has_pages(w, run) ? plan.is_retry : is_run_of(w, run, &plan);
    free(plan.addresses);
    return true;
}

static bool judge_run(walk *w, free_run *run)
{
    const gmd_snapshot_event *request = request_of(w, run);
    run->facts.knows_limit = w->runs->limit_bytes != 0;
    run->facts.is_planned = run->facts.plan_has_retry = run->has_waited = false;
    for (int has_waited = 1; request && has_waited >= 0 && !run->facts.is_planned; has_waited--) {
        if (!plan_run(w, run, request, has_waited)) {
            return false;
        }
        run->has_waited = has_waited && run->facts.is_planned && run->facts.plan_has_retry;
    }
    run->verdict = run_judge(&run->facts);
    if (run->verdict == RUN_EITHER && is_served_by_waiting(w, run)) {
        run->verdict = RUN_OF_REQUEST; /* served from the cache it would have another address */
    }
    return true;
}

static bool judge_all(walk *w)
{
    const gmd_snapshot *s = w->snapshot;
    free_runs *runs = w->runs;
    size_t next = 0;
    for (size_t at = 0; at < s->event_count; at++) {
        if (next < runs->count && runs->items[next].first == at &&
            !judge_run(w, &runs->items[next++])) {
            return false;
        }
        if (!note(w, at)) {
            return false;
        }
    }
    return true;
}

/* Under the limit that the runs have. */
static bool judge(free_runs *runs, const gmd_snapshot *snapshot, const gmd_history_hints *hints,
                  const gmd_recorded_settings *settings)
{
    walk w = {.snapshot = snapshot,
              .hints = hints,
              .settings = settings,
              .runs = runs,
              .cache = {.settings = settings}};
    bool ok = judge_all(&w);
    recorded_cache_free(&w.cache);
    return ok;
}

/* Runs that no request gave back, as far as the limit tells. */
static size_t count_unplanned(const free_runs *runs)
{
    size_t count = 0;
    for (size_t i = 0; i < runs->count; i++) {
        count += !runs->items[i].facts.is_planned;
    }
    return count;
}

/* A limit that is given was set as a fraction of the device's memory, and PyTorch rounds the
 * product down: it was that limit or a byte less. The requests that it served and refused tell;
 * else the one under which requests explain more runs: what is left is taken for calls of
 * empty_cache(). */
static bool judge_given(free_runs *runs, const gmd_snapshot *snapshot,
                        const gmd_history_hints *hints, const gmd_recorded_settings *settings)
{
    uint64_t given = hints->limit_bytes;
    if (runs->below == given && runs->at_least < given) {
        runs->limit_bytes = given - 1;
    }
    if (!judge(runs, snapshot, hints, settings)) {
        return false;
    }
    size_t unplanned = count_unplanned(runs);
    if (runs->limit_bytes != given || runs->at_least >= given || unplanned == 0) {
        return true;
    }
    runs->limit_bytes = given - 1;
    if (!judge(runs, snapshot, hints, settings)) {
        return false;
    }
    if (count_unplanned(runs) < unplanned) {
        return true;
    }
    runs->limit_bytes = given;
    return judge(runs, snapshot, hints, settings);
}

/* --- where both explain it ------------------------------------------------------------------ */

/* The recorder's count of retries decides: each refusal had one, and those runs that nothing else
 * explains. Without it the proportions do: a job that calls empty_cache() all the time also does so
 * near its limit now and then, and a job at its limit retries again and again. */
static uint64_t count_own(const free_runs *runs, int device, uint64_t recorded_retries)
{
    uint64_t certain = runs->ooms[device], either = 0, emptied = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const free_run *run = &runs->items[i];
        if (run->device == device) {
            either += run->verdict == RUN_EITHER;
            emptied += run->verdict == RUN_EMPTY_CACHE;
            certain += run->verdict == RUN_OF_REQUEST && run->facts.plan_has_retry &&
                       run->facts.follower == FOLLOWED_BY_NEW_MEMORY;
        }
    }
    if (recorded_retries != GMD_RETRIES_UNKNOWN) {
        return recorded_retries > certain ? recorded_retries - certain : 0;
    }
    /* On several devices an empty_cache() rarely finds something on only one of them. */
    return either * 4 > emptied || runs->of_several_devices ? either : 0;
}

static void settle(free_runs *runs, int device, uint64_t recorded_retries)
{
    uint64_t left = count_own(runs, device, recorded_retries);
    for (size_t i = 0; i < runs->count; i++) {
        free_run *run = &runs->items[i];
        if (run->device == device && run->verdict == RUN_EITHER) {
            run->verdict = left ? RUN_OF_REQUEST : RUN_EMPTY_CACHE;
            left -= left > 0;
        }
    }
}

bool free_runs_find(free_runs *runs, const gmd_snapshot *snapshot, const gmd_history_hints *hints)
{
    const gmd_recorded_settings settings = gmd_recorded_settings_of(snapshot);
    walk first = {.snapshot = snapshot,
                  .hints = hints,
                  .settings = &settings,
                  .runs = runs,
                  .has_calls = has_calls(hints),
                  .cache = {.settings = &settings}};
    *runs = (free_runs){.below = UINT64_MAX, .of_several_devices = snapshot->device_count > 1};
    runs->limit_bytes = hints->limit_bytes;
    runs->limit_inferred = !hints->limit_bytes;
    bool ok = survey(&first);
    if (ok && hints->limit_bytes) {
        ok = judge_given(runs, snapshot, hints, &settings);
    } else if (ok) {
        ok = memory_limit_infer(runs, &settings, hints, &runs->limit_bytes) &&
             judge(runs, snapshot, hints, &settings);
    }
    free(first.settled);
    recorded_cache_free(&first.cache);
    if (ok) {
        for (int device = 0; device < GMD_MAX_DEVICES; device++) { /* the recorder's are of 0 */
            settle(runs, device, device ? GMD_RETRIES_UNKNOWN : hints->recorded_retries);
        }
    } else {
        free_runs_free(runs);
    }
    return ok;
}

void free_runs_free(free_runs *runs)
{
    free(runs->items);
    *runs = (free_runs){0};
}
