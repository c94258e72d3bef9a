#include "recorded_cache.h"

#include "gmd_grow.h"
#include "gmd_min.h"
#include "gmd_size.h"

#include <stdlib.h>

/* --- events ------------------------------------------------------------------------------ */

/* It holds no block until the request that it was made for has its own. */
static bool add_segment(recorded_cache *c, const gmd_snapshot_event *e)
{
    segment_index added = e->size ? segment_add(&c->segments, e) : 0;
    if (added) {
        cache_segment *s = segment_of(&c->segments, added);
        s->is_small = e->size == 2 * GMD_MIB;
        s->cached_at = c->lookups[e->device];
        segment_cache(&c->segments, added);
    }
    return added || !e->size;
}

static void remove_segment(recorded_cache *c, uint64_t address)
{
    segment_index found = segment_with(&c->segments, address);
    if (found && segment_of(&c->segments, found)->address == address) {
        segment_remove(&c->segments, found);
    }
}

static void note_request(recorded_cache *c, const gmd_snapshot_event *e)
{
    bool is_small = gmd_recorded_is_small(c->settings, e->size);
    c->lookups[e->device] += !is_small;
    c->requests++;
    segment_index found =
        e->action == GMD_ACTION_ALLOC ? segment_with(&c->segments, e->address) : 0;
    if (found) {
        cache_segment *s = segment_of(&c->segments, found);
        segment_uncache(&c->segments, found);
        s->blocks++;
        s->is_small = is_small; /* a small segment's size is no proof */
    }
}

static void note_free(recorded_cache *c, const gmd_snapshot_event *e, bool is_late)
{
    segment_index found = segment_with(&c->segments, e->address);
    cache_segment *s = found ? segment_of(&c->segments, found) : NULL;
    if (s && s->blocks && --s->blocks == 0) {
        s->cached_at = c->lookups[s->device];
        s->cached_requests = c->requests;
        s->waited_to_be = is_late;
        segment_cache(&c->segments, found);
    }
}

bool recorded_cache_note(recorded_cache *c, const gmd_snapshot_event *e, bool is_late)
{
    switch (e->action) {
    case GMD_ACTION_SEGMENT_ALLOC:
        return add_segment(c, e);
    case GMD_ACTION_SEGMENT_FREE:
        remove_segment(c, e->address);
        return true;
    case GMD_ACTION_ALLOC:
    case GMD_ACTION_OOM:
        note_request(c, e);
        return true;
    case GMD_ACTION_FREE_COMPLETED:
        note_free(c, e, is_late);
        return true;
    default:
        return true;
    }
}

bool recorded_cache_is_small(const recorded_cache *c, uint64_t address)
{
    segment_index found = segment_with(&c->segments, address);
    return found && segment_of(&c->segments, found)->is_small;
}

bool recorded_cache_has_any(const recorded_cache *c, int device)
{
    return c->segments.devices[device].root != 0;
}

bool recorded_cache_has_garbage(const recorded_cache *c, int device)
{
    return c->segments.devices[device].large != 0;
}

void recorded_cache_free(recorded_cache *c)
{
    segments_free(&c->segments);
    free(c->round);
    *c = (recorded_cache){0};
}

/* --- what a request gives back ------------------------------------------------------------ */

typedef struct planner {
    recorded_cache *c;
    cache_plan *plan;
    size_t capacity; /* of plan->addresses */
    int device;
    uint64_t reserved, needed;
    uint64_t now; /* lookups, the request's own among them */
    bool has_waited;
    bool has_failed; /* no host memory */
} planner;

/* More than was looked for. */
static bool is_over(const planner *p)
{
    return p->plan->count > p->plan->most || p->has_failed;
}

static uint64_t give(planner *p, segment_index index)
{
    cache_segment *s = segment_of(&p->c->segments, index);
    if (!GMD_GROW(&p->plan->addresses, &p->capacity, p->plan->count + 1)) {
        p->has_failed = true;
        return 0;
    }
    s->is_given = true;
    p->plan->addresses[p->plan->count++] = s->address;
    p->reserved -= gmd_min(s->size, p->reserved);
    return s->size;
}

/* The next plan begins anew. */
static void forget_given(const planner *p)
{
    for (size_t i = 0; i < p->plan->count; i++) {
        segment_index index = segment_with(&p->c->segments, p->plan->addresses[i]);
        segment_of(&p->c->segments, index)->is_given = false;
    }
}

typedef struct ages { /* of the large segments that are left */
    double sum;
    uint64_t count;
    segment_index oldest;
} ages;

static uint64_t age_of(const planner *p, const cache_segment *s)
{
    return p->now - s->cached_at;
}

static bool is_awaited(const planner *p, const cache_segment *s)
{
    return p->has_waited && s->waited_to_be && s->cached_requests == p->c->requests;
}

static bool is_there(const planner *p, const cache_segment *s)
{
    return !s->is_given && !is_awaited(p, s);
}

/* All large segments but those that the retry waits for, which are at the newer end. */
static ages ages_of_garbage(const planner *p)
{
    const cached_segments *all = &p->c->segments;
    uint64_t count = all->devices[p->device].large;
    uint64_t sum = p->now * count - all->devices[p->device].large_cached_at;
    for (segment_index at = all->devices[p->device].newest;
         at && segment_of(all, at)->cached_requests == p->c->requests;
         at = segment_of(all, at)->older) {
        const cache_segment *s = segment_of(all, at);
        count -= is_awaited(p, s);
        sum -= is_awaited(p, s) ? age_of(p, s) : 0;
    }
    return (ages){(double)sum, count, all->devices[p->device].oldest};
}

/* The garbage of the average age at least, in the order of its pool, but no more than one over what
 * is looked for. */
static size_t find_round(planner *p, ages *left, double least)
{
    const cached_segments *all = &p->c->segments;
    size_t count = 0, wanted = p->plan->most - p->plan->count;
    for (; left->oldest && count <= wanted; left->oldest = segment_of(all, left->oldest)->newer) {
        const cache_segment *s = segment_of(all, left->oldest);
        if ((double)age_of(p, s) < least) {
            break;
        }
        if (!is_there(p, s)) {
            continue;
        }
        if (!GMD_GROW(&p->c->round, &p->c->round_capacity, count + 1)) {
            p->has_failed = true;
            return 0;
        }
        p->c->round[count++] = segment_place_of(s);
        left->sum -= (double)age_of(p, s);
        left->count--;
    }
    if (count) {
        qsort(p->c->round, count, sizeof *p->c->round, segment_compare_places);
    }
    return count;
}

/* One round: all that are of the average age at least, more than is wanted too. */
static uint64_t collect_round(planner *p, ages *left)
{
    size_t count = find_round(p, left, left->sum / (double)left->count);
    uint64_t given = 0;
    for (size_t i = 0; i < count; i++) {
        given += give(p, segment_with(&p->c->segments, p->c->round[i].address));
    }
    return given;
}

static void collect_garbage(planner *p, uint64_t limit)
{
    uint64_t threshold = (uint64_t)(p->c->settings->gc_threshold * (double)limit);
    if (p->reserved <= threshold) {
        return;
    }
    uint64_t wanted = p->reserved - threshold, given = 0, now = 1;
    ages left = ages_of_garbage(p);
    while (given < wanted && now && left.count && !is_over(p)) {
        now = collect_round(p, &left);
        given += now;
    }
}

/* The largest oversize segments of the request's pool and stream until they are enough. False: they
 * are not. */
static bool release_largest(planner *p, const segment_place *group, uint64_t least, uint64_t wanted)
{
    const cached_segments *all = &p->c->segments;
    segment_place place = {group->is_small, group->stream, UINT64_MAX, UINT64_MAX};
    uint64_t given = 0;
    while (given < wanted && !is_over(p)) {
        segment_index at = segment_before(all, p->device, &place);
        const cache_segment *s = segment_of(all, at);
        if (!at || s->is_small != group->is_small || s->stream != group->stream ||
            s->size < least) {
            return false;
        }
        place = segment_place_of(s);
        given += is_there(p, s) ? give(p, at) : 0;
    }
    return given >= wanted;
}

/* The smallest oversize segment that is large enough; else the largest ones. False: it is not
 * enough. */
static bool release_oversize(planner *p, const gmd_snapshot_event *request)
{
    const cached_segments *all = &p->c->segments;
    uint64_t least = p->c->settings->max_split_bytes;
    uint64_t size = gmd_recorded_block_size(p->c->settings, request->size);
    uint64_t wanted = gmd_max(size, least);
    bool is_small = gmd_recorded_is_small(p->c->settings, request->size);
    const segment_place group = {is_small, request->stream, wanted, 0};
    for (segment_index at = segment_from(all, p->device, &group); at; at = segment_next(all, at)) {
        const cache_segment *s = segment_of(all, at);
        if (s->is_small != is_small || s->stream != request->stream) {
            break;
        }
        if (is_there(p, s)) {
            give(p, at);
            return true;
        }
    }
    return release_largest(p, &group, least, wanted);
}

static void release_rest(planner *p)
{
    const cached_segments *all = &p->c->segments;
    for (segment_index at = segment_first(all, p->device); at && !is_over(p);
         at = segment_next(all, at)) {
        if (!segment_of(all, at)->is_given) {
            give(p, at);
        }
    }
}

static bool is_refused(const planner *p, uint64_t limit)
{
    return limit && (p->needed > limit || p->reserved > limit - p->needed);
}

static void plan_request(planner *p, const gmd_snapshot_event *request, uint64_t limit)
{
    const gmd_recorded_settings *s = p->c->settings;
    if (limit && s->gc_threshold > 0 && !s->is_expandable) {
        collect_garbage(p, limit);
    }
    if (is_over(p) || !is_refused(p, limit)) {
        return;
    }
    bool is_enough = s->max_split_bytes != UINT64_MAX && !s->is_expandable &&
                     release_oversize(p, request) && !is_refused(p, limit);
    if (!is_enough) {
        release_rest(p);
        p->plan->is_retry = true;
    }
}

static bool finish(const planner *p)
{
    forget_given(p);
    if (p->has_failed) {
        free(p->plan->addresses);
        *p->plan = (cache_plan){0};
    }
    return !p->has_failed;
}

bool recorded_cache_plan(recorded_cache *c, const gmd_snapshot_event *request, uint64_t reserved,
                         uint64_t limit, bool has_waited, size_t most, cache_plan *plan)
{
    const gmd_recorded_settings *s = c->settings;
    *plan = (cache_plan){.most = most};
    planner p = {.c = c,
                 .plan = plan,
                 .device = request->device,
                 .reserved = reserved,
                 .needed = gmd_recorded_segment_size(s, request->size),
                 .has_waited = has_waited,
                 .now = c->lookups[request->device] + !gmd_recorded_is_small(s, request->size)};
    plan_request(&p, request, limit);
    return finish(&p);
}

bool recorded_cache_plan_all(recorded_cache *c, int device, size_t most, cache_plan *plan)
{
    *plan = (cache_plan){.most = most};
    planner p = {.c = c, .plan = plan, .device = device, .reserved = UINT64_MAX};
    release_rest(&p);
    return finish(&p);
}
