/* The order is a treap whose priorities nobody can choose, so that chosen addresses make it no
 * deeper than others. */
#include "cached_segments.h"

#include "gmd_grow.h"
#include "gmd_keyed_hash.h"
#include "gmd_min.h"

#include <stdlib.h>

void segments_free(cached_segments *s)
{
    free(s->items);
    gmd_intervals_free(&s->by_address);
    *s = (cached_segments){0};
}

/* --- by address ----------------------------------------------------------------------------- */

segment_index segment_with(const cached_segments *s, uint64_t address)
{
    const gmd_interval *found = gmd_intervals_after(&s->by_address, address);
    return found && found->address <= address ? (segment_index)found->value : 0;
}

static segment_index take_index(cached_segments *s)
{
    segment_index spare = s->spare;
    if (spare) {
        s->spare = s->items[spare].lower;
        return spare;
    }
    if (s->used == 0) {
        s->random.state = gmd_hash_key_draw().first;
        s->used = 1;
    }
    if (s->used == UINT32_MAX || !GMD_GROW(&s->items, &s->capacity, s->used + 1)) {
        return 0;
    }
    return (segment_index)s->used++;
}

static void give_index(cached_segments *s, segment_index index)
{
    s->items[index].lower = s->spare;
    s->spare = index;
}

void segment_remove(cached_segments *s, segment_index index)
{
    segment_uncache(s, index);
    gmd_intervals_remove(&s->by_address, s->items[index].address);
    give_index(s, index);
}

segment_index segment_add(cached_segments *s, const gmd_snapshot_event *taken)
{
    uint64_t end = taken->address + taken->size;
    for (const gmd_interval *old;
         (old = gmd_intervals_after(&s->by_address, taken->address)) && old->address < end;) {
        segment_remove(s, (segment_index)old->value);
    }
    segment_index index = take_index(s);
    if (!index) {
        return 0;
    }
    if (!gmd_intervals_insert(&s->by_address, taken->address, end, index)) {
        give_index(s, index);
        return 0;
    }
    s->items[index] = (cache_segment){.address = taken->address,
                                      .size = taken->size,
                                      .stream = taken->stream,
                                      .device = taken->device};
    return index;
}

/* --- in order ------------------------------------------------------------------------------- */

segment_place segment_place_of(const cache_segment *segment)
{
    return (segment_place){segment->is_small, segment->stream, segment->size, segment->address};
}

int segment_compare_places(const void *a, const void *b)
{
    const segment_place *x = a, *y = b;
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

static bool is_before(const cached_segments *s, segment_index index, const segment_place *place)
{
    segment_place own = segment_place_of(segment_of(s, index));
    return segment_compare_places(&own, place) < 0;
}

static bool outranks(const cached_segments *s, segment_index a, segment_index b)
{
    return s->items[a].priority > s->items[b].priority;
}

/* Splits the tree into what comes before the segment and the rest, which become its children. */
static void adopt(cached_segments *s, segment_index tree, segment_index index)
{
    segment_place place = segment_place_of(segment_of(s, index));
    segment_index *lower = &s->items[index].lower, *upper = &s->items[index].upper;
    while (tree) {
        if (is_before(s, tree, &place)) {
            *lower = tree;
            lower = &s->items[tree].upper;
            tree = *lower;
        } else {
            *upper = tree;
            upper = &s->items[tree].lower;
            tree = *upper;
        }
    }
    *lower = *upper = 0;
}

static void insert(cached_segments *s, segment_index *link, segment_index index)
{
    segment_place place = segment_place_of(segment_of(s, index));
    while (*link && outranks(s, *link, index)) {
        link = is_before(s, *link, &place) ? &s->items[*link].upper : &s->items[*link].lower;
    }
    adopt(s, *link, index);
    *link = index;
}

/* Takes out what the link leads to: its children are joined. */
static void unlink_node(cached_segments *s, segment_index *link)
{
    segment_index lower = s->items[*link].lower, upper = s->items[*link].upper;
    while (lower && upper) {
        if (outranks(s, lower, upper)) {
            *link = lower;
            link = &s->items[lower].upper;
            lower = *link;
        } else {
            *link = upper;
            link = &s->items[upper].lower;
            upper = *link;
        }
    }
    *link = lower ? lower : upper;
}

static void erase(cached_segments *s, segment_index *link, segment_index index)
{
    segment_place place = segment_place_of(segment_of(s, index));
    while (*link != index) {
        link = is_before(s, *link, &place) ? &s->items[*link].upper : &s->items[*link].lower;
    }
    unlink_node(s, link);
}

segment_index segment_from(const cached_segments *s, int device, const segment_place *place)
{
    segment_index found = 0;
    for (segment_index at = s->devices[device].root; at;) {
        if (is_before(s, at, place)) {
            at = s->items[at].upper;
        } else {
            found = at;
            at = s->items[at].lower;
        }
    }
    return found;
}

segment_index segment_before(const cached_segments *s, int device, const segment_place *place)
{
    segment_index found = 0;
    for (segment_index at = s->devices[device].root; at;) {
        if (is_before(s, at, place)) {
            found = at;
            at = s->items[at].upper;
        } else {
            at = s->items[at].lower;
        }
    }
    return found;
}

segment_index segment_first(const cached_segments *s, int device)
{
    return segment_from(s, device, &(segment_place){0});
}

segment_index segment_next(const cached_segments *s, segment_index index)
{
    segment_place behind = segment_place_of(segment_of(s, index));
    behind.address++; /* no segment ends above the highest address */
    return segment_from(s, s->items[index].device, &behind);
}

/* --- what is cached ------------------------------------------------------------------------- */

/* Only large segments have an age that counts. */
static void join_by_age(cached_segments *s, segment_index index)
{
    cache_segment *segment = segment_of(s, index);
    segment_index newest = s->devices[segment->device].newest;
    segment->older = newest;
    segment->newer = 0;
    *(newest ? &s->items[newest].newer : &s->devices[segment->device].oldest) = index;
    s->devices[segment->device].newest = index;
    s->devices[segment->device].large++;
    s->devices[segment->device].large_cached_at += segment->cached_at;
}

static void leave_by_age(cached_segments *s, segment_index index)
{
    const cache_segment *segment = segment_of(s, index);
    segment_index older = segment->older, newer = segment->newer;
    *(older ? &s->items[older].newer : &s->devices[segment->device].oldest) = newer;
    *(newer ? &s->items[newer].older : &s->devices[segment->device].newest) = older;
    s->devices[segment->device].large--;
    s->devices[segment->device].large_cached_at -= segment->cached_at;
}

void segment_cache(cached_segments *s, segment_index index)
{
    cache_segment *segment = segment_of(s, index);
    segment->is_cached = true;
    segment->priority = (uint32_t)gmd_random_next(&s->random);
    insert(s, &s->devices[segment->device].root, index);
    if (!segment->is_small) {
        join_by_age(s, index);
    }
}

void segment_uncache(cached_segments *s, segment_index index)
{
    cache_segment *segment = segment_of(s, index);
    if (!segment->is_cached) {
        return;
    }
    if (!segment->is_small) {
        leave_by_age(s, index);
    }
    erase(s, &s->devices[segment->device].root, index);
    segment->is_cached = false;
}
