#include "free_runs.h"

#include "memory_limit.h"
#include "recorded_cache.h"

#include <stdlib.h>
#include <string.h>

/* --- the rules ---------------------------------------------------------------------------- */

run_verdict run_judge(const run_facts *f)
{
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

/* --- going through a history -------------------------------------------------------------- */

typedef struct walk {
    const gmd_snapshot *snapshot;
    const gmd_history_hints *hints;
    const recorded_settings *settings;
    free_runs *runs;
    recorded_cache cache;
    uint64_t reserved[GMD_MAX_DEVICES];
    uint64_t reserved_before; /* the memory that the request to come has taken */
    size_t next_op;           /* of the operations; SIZE_MAX: they do not fit the history */
} walk;

static bool note(walk *w, const gmd_snapshot_event *e)
{
    uint64_t *reserved = &w->reserved[e->device];
    if (event_takes(e)) {
        *reserved += e->size;
    } else if (event_gives(e)) { /* one from before the recording counts for 0 */
        *reserved -= e->size < *reserved ? e->size : *reserved;
    }
    return recorded_cache_note(&w->cache, e);
}

static bool is_within_run(const gmd_snapshot *s, size_t at, uint8_t device)
{
    while (at < s->event_count && s->events[at].action == GMD_ACTION_FREE_COMPLETED &&
           s->events[at].device == device) {
        at++; /* a retry settles pending frees after a collection, and before the rest */
    }
    return at < s->event_count && event_gives(&s->events[at]) && s->events[at].device == device;
}

static size_t end_of_run(const gmd_snapshot *s, size_t first)
{
    size_t at = first;
    while (is_within_run(s, at, s->events[first].device)) {
        at++;
    }
    return at;
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

static const gmd_snapshot_event *request_of(const walk *w, const free_run *run)
{
    const gmd_snapshot_event *e = request_after(w->snapshot, run->end);
    return e && e->device == w->snapshot->events[run->first].device ? e : NULL;
}

/* Whether the run gives back these segments, in this order. */
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

static bool would_have_served(const walk *w, const free_run *run, const gmd_snapshot_event *request)
{
    bool is_small = recorded_is_small(w->settings, request->size);
    for (size_t i = run->first; i < run->end; i++) {
        const gmd_snapshot_event *e = &w->snapshot->events[i];
        if (e->action == GMD_ACTION_SEGMENT_FREE && e->stream == request->stream &&
            recorded_cache_is_small(&w->cache, e->address) == is_small &&
            recorded_serves(w->settings, e->size, request->size)) {
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

static bool has_pages(const walk *w, const free_run *run)
{
    return w->snapshot->events[run->first].action == GMD_ACTION_SEGMENT_UNMAP;
}

/* The count of retries before and after a request, by the operations. */
static void read_retries(const walk *w, run_facts *facts)
{
    const gmd_truth_op *ops = w->hints->ops;
    if (w->next_op < w->hints->op_count) {
        uint64_t before = w->next_op ? ops[w->next_op - 1].retries : 0;
        facts->knows_retries = true;
        facts->has_retried = ops[w->next_op].retries > before;
    }
}

static bool survey_run(walk *w, free_run *run)
{
    const gmd_snapshot_event *events = w->snapshot->events, *request = request_of(w, run);
    run_facts *f = &run->facts;
    cache_plan all;
    if (!recorded_cache_plan_all(&w->cache, events[run->first].device, &all)) {
        return false;
    }
    f->is_all = has_pages(w, run) || is_run_of(w, run, &all);
    free(all.addresses);
    f->is_between_pages = run->first > 0 && event_takes(&events[run->first - 1]);
    const free_run *before = w->runs->count ? &w->runs->items[w->runs->count - 1] : NULL;
    f->continues = before && before->end == run->first &&
                   events[before->first].device < events[run->first].device;
    if (request) {
        f->follower =
            request->action == GMD_ACTION_OOM ? FOLLOWED_BY_REFUSAL : FOLLOWED_BY_NEW_MEMORY;
        f->would_have_served = would_have_served(w, run, request);
        run->needed = recorded_segment_size(w->settings, request->size);
        run->is_oversize = is_oversize(w, run, request);
        read_retries(w, f);
    }
    return true;
}

static free_run *add_run(free_runs *runs)
{
    if (runs->count == runs->capacity) {
        size_t capacity = runs->capacity ? runs->capacity * 2 : 64;
        free_run *items = realloc(runs->items, capacity * sizeof *items);
        if (!items) {
            return NULL;
        }
        runs->items = items;
        runs->capacity = capacity;
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
                      .end = end_of_run(w->snapshot, *at),
                      .reserved = w->reserved[w->snapshot->events[*at].device]};
    if (!survey_run(w, run)) {
        return false;
    }
    w->runs->count++;
    for (; *at < run->end; ++*at) {
        if (!note(w, &w->snapshot->events[*at])) {
            return false;
        }
    }
    return true;
}

/* The operations go with the requests one by one, or they are of another history. */
static void match_operation(walk *w, const gmd_snapshot_event *e)
{
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
    uint64_t needed = recorded_segment_size(w->settings, e->size), before = w->reserved_before;
    if (!has_new && e->action == GMD_ACTION_OOM) {
        before = w->reserved[e->device];
    }
    uint64_t total = needed > UINT64_MAX - before ? UINT64_MAX : needed + before;
    free_runs *r = w->runs;
    if (e->action == GMD_ACTION_OOM) {
        r->ooms++;
        r->below = total < r->below ? total : r->below;
    } else if (has_new) {
        r->at_least = total > r->at_least ? total : r->at_least;
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
        if (!note(w, e)) {
            return false;
        }
        at++;
    }
    return true;
}

/* --- second pass: under the limit ---------------------------------------------------------- */

static bool judge_run(walk *w, free_run *run)
{
    const gmd_snapshot_event *request = request_of(w, run);
    run->facts.knows_limit = w->runs->limit_bytes != 0;
    if (request) {
        cache_plan plan;
        if (!recorded_cache_plan(&w->cache, request, run->reserved, w->runs->limit_bytes, &plan)) {
            return false;
        }
        run->facts.plan_has_retry = plan.is_retry;
        run->facts.is_planned = has_pages(w, run) ? plan.is_retry : is_run_of(w, run, &plan);
        free(plan.addresses);
    }
    run->verdict = run_judge(&run->facts);
    return true;
}

static bool judge(walk *w)
{
    const gmd_snapshot *s = w->snapshot;
    free_run *run = w->runs->items, *end = run + w->runs->count;
    for (size_t at = 0; at < s->event_count; at++) {
        if (run != end && run->first == at && !judge_run(w, run++)) {
            return false;
        }
        if (!note(w, &s->events[at])) {
            return false;
        }
    }
    return true;
}

/* --- where both explain it ------------------------------------------------------------------ */

/* The recorder's count of retries decides: each refusal had one, and those runs that nothing else
 * explains. Without it the proportions do: a job that calls empty_cache() all the time also does so
 * near its limit now and then, and a job at its limit retries again and again. */
static void settle(free_runs *runs, uint64_t recorded_retries)
{
    uint64_t certain = runs->ooms, either = 0, own = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const free_run *run = &runs->items[i];
        either += run->verdict == RUN_EITHER;
        own += run->verdict == RUN_EMPTY_CACHE;
        certain += run->verdict == RUN_OF_REQUEST && run->facts.plan_has_retry &&
                   run->facts.follower == FOLLOWED_BY_NEW_MEMORY;
    }
    uint64_t left = either * 4 > own ? either : 0;
    if (recorded_retries != GMD_RETRIES_UNKNOWN) {
        left = recorded_retries > certain ? recorded_retries - certain : 0;
    }
    for (size_t i = 0; i < runs->count; i++) {
        free_run *run = &runs->items[i];
        if (run->verdict == RUN_EITHER) {
            run->verdict = left ? RUN_OF_REQUEST : RUN_EMPTY_CACHE;
            left -= left > 0;
        }
    }
}

bool free_runs_find(free_runs *runs, const gmd_snapshot *snapshot, const gmd_history_hints *hints)
{
    const recorded_settings settings = recorded_settings_of(snapshot);
    walk first = {.snapshot = snapshot,
                  .hints = hints,
                  .settings = &settings,
                  .runs = runs,
                  .cache = {.settings = &settings}};
    walk second = first;
    *runs = (free_runs){.below = UINT64_MAX};
    bool ok = survey(&first);
    if (ok) {
        runs->limit_bytes =
            hints->limit_bytes ? hints->limit_bytes : memory_limit_infer(runs, &settings, hints);
        runs->limit_inferred = !hints->limit_bytes;
        ok = judge(&second);
    }
    recorded_cache_free(&first.cache);
    recorded_cache_free(&second.cache);
    if (ok) {
        settle(runs, hints->recorded_retries);
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
