#include "recorded_cache.h"

#include "gmd_grow.h"
#include "gmd_min.h"
#include "gmd_size.h"

#include <stdlib.h>
#include <string.h>

/* --- segments by address ----------------------------------------------------------------- */

static bool reserve(segment_list *list, size_t count)
{
    return GMD_GROW(&list->items, &list->capacity, count);
}

/* The number of segments that begin at or below an address. */
static size_t count_up_to(const segment_list *list, uint64_t address)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->items[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static cache_segment *segment_with(const segment_list *list, uint64_t address)
{
    size_t above = count_up_to(list, address);
    cache_segment *s = above ? &list->items[above - 1] : NULL;
    return s && address - s->address < s->size ? s : NULL;
}

static bool add_segment(recorded_cache *c, const gmd_snapshot_event *e)
{
    segment_list *list = &c->segments;
    if (!reserve(list, list->count + 1)) {
        return false;
    }
    size_t at = count_up_to(list, e->address);
    memmove(&list->items[at + 1], &list->items[at], (list->count - at) * sizeof *list->items);
    list->items[at] = (cache_segment){.address = e->address,
                                      .size = e->size,
                                      .stream = e->stream,
                                      .device = e->device,
                                      .is_small = e->size == 2 * GMD_MIB};
    list->count++;
    return true;
}

static void remove_segment(segment_list *list, uint64_t address)
{
    cache_segment *s = segment_with(list, address);
    if (s && s->address == address) {
        size_t after = list->count - (size_t)(s - list->items) - 1;
        memmove(s, s + 1, after * sizeof *s);
        list->count--;
    }
}

/* --- events ------------------------------------------------------------------------------ */

static void note_request(recorded_cache *c, const gmd_snapshot_event *e)
{
    bool is_small = gmd_recorded_is_small(c->settings, e->size);
    c->lookups[e->device] += !is_small;
    c->requests++;
    cache_segment *s =
        e->action == GMD_ACTION_ALLOC ? segment_with(&c->segments, e->address) : NULL;
    if (s) {
        s->blocks++;
        s->is_small = is_small; /* a small segment's size is no proof */
    }
}

static void note_free(recorded_cache *c, const gmd_snapshot_event *e, bool is_late)
{
    cache_segment *s = segment_with(&c->segments, e->address);
    if (s && s->blocks && --s->blocks == 0) {
        s->cached_at = c->lookups[s->device];
        s->late_until = is_late ? c->requests + 1 : 0;
    }
}

bool recorded_cache_note(recorded_cache *c, const gmd_snapshot_event *e, bool is_late)
{
    switch (e->action) {
    case GMD_ACTION_SEGMENT_ALLOC:
        return add_segment(c, e);
    case GMD_ACTION_SEGMENT_FREE:
        remove_segment(&c->segments, e->address);
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
    const cache_segment *s = segment_with(&c->segments, address);
    return s && s->is_small;
}

static bool has_cached(const recorded_cache *c, int device, bool with_small)
{
    for (size_t i = 0; i < c->segments.count; i++) {
        const cache_segment *s = &c->segments.items[i];
        if (!s->blocks && s->device == device && (with_small || !s->is_small)) {
            return true;
        }
    }
    return false;
}

bool recorded_cache_has_any(const recorded_cache *c, int device)
{
    return has_cached(c, device, true);
}

bool recorded_cache_has_garbage(const recorded_cache *c, int device)
{
    return has_cached(c, device, false);
}

void recorded_cache_free(recorded_cache *c)
{
    free(c->segments.items);
    free(c->cached.items);
    *c = (recorded_cache){0};
}

/* --- what is cached, in the order of PyTorch's sets --------------------------------------- */

/* Large blocks before small ones; within a pool by stream, size and address. */
static int compare_in_set(const void *a, const void *b)
{
    const cache_segment *x = a, *y = b;
    if (x->is_small != y->is_small) {
        return x->is_small ? 1 : -1;
    }
    if (x->stream != y->stream) {
        return x->stream < y->stream ? -1 : 1;
    }
    if (x->size != y->size) {
        return x->size < y->size ? -1 : 1;
    }
    return (x->address > y->address) - (x->address < y->address);
}

static bool list_cached(recorded_cache *c, int device)
{
    c->cached.count = 0;
    if (!reserve(&c->cached, c->segments.count)) {
        return false;
    }
    for (size_t i = 0; i < c->segments.count; i++) {
        const cache_segment *s = &c->segments.items[i];
        if (!s->blocks && s->device == device) {
            c->cached.items[c->cached.count++] = *s;
        }
    }
    if (c->cached.count) {
        qsort(c->cached.items, c->cached.count, sizeof *c->cached.items, compare_in_set);
    }
    return true;
}

/* --- what a request gives back ------------------------------------------------------------ */

typedef struct planner {
    recorded_cache *c;
    cache_plan *plan;
    uint64_t reserved, needed;
    uint64_t now; /* lookups, the request's own among them */
    bool has_waited;
} planner;

static uint64_t give(planner *p, cache_segment *s)
{
    s->is_given = true;
    p->plan->addresses[p->plan->count++] = s->address;
    p->reserved -= gmd_min(s->size, p->reserved);
    return s->size;
}

typedef struct ages { /* of the large segments that are left */
    double sum;
    uint64_t count;
} ages;

static uint64_t age_of(const planner *p, const cache_segment *s)
{
    return p->now - s->cached_at;
}

static bool is_there(const planner *p, const cache_segment *s)
{
    return !s->is_given && !(p->has_waited && s->late_until == p->c->requests + 1);
}

static bool is_garbage(const planner *p, const cache_segment *s)
{
    return !s->is_small && is_there(p, s);
}

/* One round: all that are of the average age at least, more than is wanted too. */
static uint64_t collect_round(planner *p, ages *left)
{
    double least = left->sum / (double)left->count;
    uint64_t given = 0;
    for (size_t i = 0; i < p->c->cached.count; i++) {
        cache_segment *s = &p->c->cached.items[i];
        if (is_garbage(p, s) && (double)age_of(p, s) >= least) {
            left->sum -= (double)age_of(p, s);
            left->count--;
            given += give(p, s);
        }
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
    ages left = {0};
    for (size_t i = 0; i < p->c->cached.count; i++) {
        const cache_segment *s = &p->c->cached.items[i];
        left.sum += is_garbage(p, s) ? (double)age_of(p, s) : 0;
        left.count += is_garbage(p, s);
    }
    while (given < wanted && now && left.count) {
        now = collect_round(p, &left);
        given += now;
    }
}

/* The smallest oversize segment that is large enough; else the largest ones until that is enough.
 * False: it is not. */
static bool release_oversize(planner *p, const gmd_snapshot_event *request)
{
    uint64_t least = p->c->settings->max_split_bytes;
    uint64_t size = gmd_recorded_block_size(p->c->settings, request->size), given = 0;
    uint64_t wanted = gmd_max(size, least);
    segment_list *list = &p->c->cached;
    bool is_small = gmd_recorded_is_small(p->c->settings, request->size);
    for (size_t i = 0; i < list->count; i++) {
        cache_segment *s = &list->items[i];
        if (is_there(p, s) && s->is_small == is_small && s->stream == request->stream &&
            s->size >= wanted) {
            give(p, s);
            return true;
        }
    }
    for (size_t i = list->count; i-- > 0 && given < wanted;) {
        cache_segment *s = &list->items[i];
        if (is_there(p, s) && s->is_small == is_small && s->stream == request->stream &&
            s->size >= least) {
            given += give(p, s);
        }
    }
    return given >= wanted;
}

static void release_rest(planner *p)
{
    for (size_t i = 0; i < p->c->cached.count; i++) {
        if (!p->c->cached.items[i].is_given) {
            give(p, &p->c->cached.items[i]);
        }
    }
}

static bool is_refused(const planner *p, uint64_t limit)
{
    return limit && (p->needed > limit || p->reserved > limit - p->needed);
}

static bool begin(recorded_cache *c, int device, cache_plan *plan)
{
    *plan = (cache_plan){0};
    if (!list_cached(c, device)) {
        return false;
    }
    plan->addresses = malloc((c->cached.count + 1) * sizeof *plan->addresses);
    return plan->addresses != NULL;
}

bool recorded_cache_plan(recorded_cache *c, const gmd_snapshot_event *request, uint64_t reserved,
                         uint64_t limit, bool has_waited, cache_plan *plan)
{
    const gmd_recorded_settings *s = c->settings;
    if (!begin(c, request->device, plan)) {
        return false;
    }
    planner p = {.c = c,
                 .plan = plan,
                 .reserved = reserved,
                 .needed = gmd_recorded_segment_size(s, request->size),
                 .has_waited = has_waited,
                 .now = c->lookups[request->device] + !gmd_recorded_is_small(s, request->size)};
    if (limit && s->gc_threshold > 0 && !s->is_expandable) {
        collect_garbage(&p, limit);
    }
    if (!is_refused(&p, limit)) {
        return true;
    }
    bool is_enough = s->max_split_bytes != UINT64_MAX && !s->is_expandable &&
                     release_oversize(&p, request) && !is_refused(&p, limit);
    if (!is_enough) {
        release_rest(&p);
        plan->is_retry = true;
    }
    return true;
}

bool recorded_cache_plan_all(recorded_cache *c, int device, cache_plan *plan)
{
    if (!begin(c, device, plan)) {
        return false;
    }
    planner p = {.c = c, .plan = plan, .reserved = UINT64_MAX};
    release_rest(&p);
    return true;
}
