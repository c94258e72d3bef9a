#include "memory_limit.h"

#include "gmd_size.h"

#include <stdlib.h>

/* The device memory that PyTorch's algorithm asks for when no cached block fits; the one rule of
 * the recorded allocator that reading a history needs. */
static uint64_t segment_size_for(uint64_t block_size)
{
    const uint64_t step = 2 * GMD_MIB;
    if (block_size <= GMD_MIB) {
        return step;
    }
    if (block_size < 10 * GMD_MIB) {
        return 20 * GMD_MIB;
    }
    return block_size > UINT64_MAX - step ? UINT64_MAX : (block_size + step - 1) / step * step;
}

void reserved_count(reserved_bytes *reserved, const gmd_snapshot_event *event)
{
    if (event_takes(event)) {
        reserved->of[event->device] += event->size;
    } else if (event_gives(event)) {
        uint64_t *of = &reserved->of[event->device];
        *of -=
            event->size < *of ? event->size : *of; /* one from before the recording counts for 0 */
    }
}

/* The request that follows a run: an out-of-memory, or the allocation that got new memory. */
static const gmd_snapshot_event *request_after(const gmd_snapshot *s, size_t at)
{
    size_t end = at;
    while (end < s->event_count && event_takes(&s->events[end])) {
        end++;
    }
    const gmd_snapshot_event *e = end < s->event_count ? &s->events[end] : NULL;
    /* An allocation without new memory was served from the cache: it gave nothing back. */
    bool is_request =
        e && (e->action == GMD_ACTION_OOM || (e->action == GMD_ACTION_ALLOC && end > at));
    return is_request ? e : NULL;
}

/* Whether a segment of the run would have served the request: then it was gone before the request,
 * for an allocator asks its cache first. */
static bool would_have_served(const gmd_snapshot *s, const free_run *run,
                              const gmd_snapshot_event *request)
{
    bool is_small = request->size <= GMD_MIB;
    for (size_t i = run->first; i < run->end; i++) {
        const gmd_snapshot_event *segment = &s->events[i];
        if (segment->stream == request->stream && segment->size >= request->size &&
            (segment->size == 2 * GMD_MIB) == is_small) {
            return true;
        }
    }
    return false;
}

/* With other settings than the default ones a cached segment need not serve a request that it can
 * hold, and is not given back at the limit only. */
static bool has_settings(const gmd_snapshot *s)
{
    return (s->conf && *s->conf) || s->setting;
}

free_run free_run_read(const gmd_snapshot *snapshot, size_t at, reserved_bytes *reserved)
{
    const gmd_snapshot_event *events = snapshot->events;
    uint8_t device = events[at].device;
    uint64_t before = reserved->of[device];
    free_run run = {.first = at};
    while (at < snapshot->event_count && event_gives(&events[at]) && events[at].device == device) {
        reserved_count(reserved, &events[at++]);
    }
    run.end = at;
    const gmd_snapshot_event *request = request_after(snapshot, at);
    if (request && request->device == device &&
        (has_settings(snapshot) || !would_have_served(snapshot, &run, request))) {
        run.is_before_oom = request->action == GMD_ACTION_OOM;
        run.explained_below = run.is_before_oom ? 0 : before + events[at].size;
    }
    return run;
}

/* What a history says about its limit. */
typedef struct evidence {
    uint64_t at_least; /* the most that was ever reserved */
    uint64_t below;    /* an allocation failed that would have brought reserved to this */
    uint64_t ooms;
    bool maps; /* expandable segments: the limit is held against more than is mapped in the end */
    uint64_t own_runs;    /* that no limit explains */
    uint64_t *candidates; /* explained_below of the runs that a limit may explain, in order */
    size_t candidate_count;
} evidence;

static void weigh(evidence *e, const gmd_snapshot_event *event, const reserved_bytes *reserved)
{
    uint64_t now = reserved->of[event->device];
    if (event_takes(event)) {
        e->at_least = now > e->at_least ? now : e->at_least;
    } else if (event->action == GMD_ACTION_OOM) {
        uint64_t needed = segment_size_for(event->size);
        uint64_t total = needed > UINT64_MAX - now ? UINT64_MAX : needed + now;
        e->below = total < e->below ? total : e->below;
        e->ooms++;
    }
    e->maps = e->maps || event->action == GMD_ACTION_SEGMENT_MAP;
}

static bool gather(const gmd_snapshot *s, evidence *e)
{
    *e = (evidence){.below = UINT64_MAX,
                    .candidates = malloc((s->event_count + 1) * sizeof *e->candidates)};
    reserved_bytes reserved = {0};
    for (size_t i = 0; i < s->event_count && e->candidates;) {
        if (!event_gives(&s->events[i])) {
            reserved_count(&reserved, &s->events[i]);
            weigh(e, &s->events[i++], &reserved);
            continue;
        }
        free_run run = free_run_read(s, i, &reserved);
        i = run.end;
        if (run.explained_below) {
            e->candidates[e->candidate_count++] = run.explained_below;
        } else if (!run.is_before_oom) {
            e->own_runs++;
        }
    }
    return e->candidates != NULL;
}

static uint64_t count_above(const evidence *e, uint64_t limit)
{
    uint64_t count = 0;
    for (size_t i = 0; i < e->candidate_count; i++) {
        count += e->candidates[i] > limit;
    }
    return count;
}

/* How many of the `possible` runs are retries at the limit. The recorder's count of retries says
 * so: each out-of-memory had one, the others succeeded. Without it the proportions decide: a job
 * that calls empty_cache() all the time also does so near its limit now and then, and a job at its
 * limit retries again and again. */
static uint64_t count_retries(const evidence *e, uint64_t possible, uint64_t recorded_retries)
{
    if (recorded_retries != GMD_RETRIES_UNKNOWN) {
        uint64_t succeeded = recorded_retries > e->ooms ? recorded_retries - e->ooms : 0;
        return succeeded < possible ? succeeded : possible;
    }
    uint64_t own = e->own_runs + e->candidate_count - possible;
    return possible * 4 > own ? possible : 0;
}

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* The n-th highest of the candidates (1: the highest). */
static uint64_t nth_candidate(const evidence *e, uint64_t n)
{
    uint64_t *sorted = malloc((e->candidate_count + 1) * sizeof *sorted);
    if (!sorted) {
        return 0;
    }
    for (size_t i = 0; i < e->candidate_count; i++) {
        sorted[i] = e->candidates[i];
    }
    qsort(sorted, e->candidate_count, sizeof *sorted, compare_descending);
    uint64_t value = sorted[n - 1];
    free(sorted);
    return value;
}

/* The highest limit that the failures and successes allow and that explains the retries; 0: nothing
 * speaks for one. */
static uint64_t infer(const evidence *e, uint64_t recorded_retries)
{
    uint64_t below = e->below;
    uint64_t retries = count_retries(e, count_above(e, e->at_least), recorded_retries);
    if (e->maps) {
        return 0;
    }
    if (retries) {
        uint64_t tightest = nth_candidate(e, retries);
        below = tightest && tightest < below ? tightest : below;
    }
    return below == UINT64_MAX || below <= e->at_least ? 0 : below - 1;
}

bool memory_limit_find(const gmd_snapshot *snapshot, const gmd_history_hints *hints,
                       memory_limit *limit)
{
    evidence e;
    if (!gather(snapshot, &e)) {
        return false;
    }
    limit->bytes = hints->limit_bytes ? hints->limit_bytes : infer(&e, hints->recorded_retries);
    limit->is_inferred = !hints->limit_bytes && !e.maps;
    limit->explained_runs =
        limit->bytes ? count_retries(&e, count_above(&e, limit->bytes), hints->recorded_retries)
                     : 0;
    limit->explains_all = e.maps || has_settings(snapshot);
    free(e.candidates);
    return true;
}
