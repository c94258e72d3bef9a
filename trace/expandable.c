#include "expandable.h"

#include "gmd_grow.h"
#include "gmd_min.h"

#include <stdlib.h>

/* A page right after the last one belongs to the same segment: reservations are far larger than
 * what is mapped of them, so two never touch. */
static gmd_interval *find(const expandable_segments *s, const gmd_snapshot_event *e)
{
    gmd_interval *range = gmd_intervals_after(&s->ranges, e->address);
    if (!range || range->address > e->address) {
        range = gmd_intervals_before(&s->ranges, e->address);
    }
    const expandable_segment *one = range ? &s->items[range->value] : NULL;
    bool is_it =
        one && one->device == e->device && one->stream == e->stream && range->end >= e->address;
    return is_it ? range : NULL;
}

static void note_distance(expandable_segments *s, uint64_t distance)
{
    s->nearest = !s->nearest || distance < s->nearest ? distance : s->nearest;
}

/* The neighbours are the nearest. */
static void note_distances(expandable_segments *s, uint64_t begin)
{
    const gmd_interval *below = gmd_intervals_before(&s->ranges, begin);
    if (below) {
        note_distance(s, begin - below->address);
    }
    const gmd_interval *above = gmd_intervals_after(&s->ranges, begin);
    if (above) {
        note_distance(s, above->address - begin);
    }
}

/* What lies there is gone. */
static void remove_within(expandable_segments *s, uint64_t begin, uint64_t end)
{
    for (const gmd_interval *old;
         (old = gmd_intervals_after(&s->ranges, begin)) && old->address < end;) {
        gmd_intervals_remove(&s->ranges, old->address);
    }
}

expandable_answer expandable_map(expandable_segments *s, const gmd_snapshot_event *e)
{
    uint64_t end = e->address + e->size;
    gmd_interval *found = find(s, e);
    if (e->size == 0) {
        return EXPANDABLE_OLD; /* no page */
    }
    if (found) {
        uint64_t begin = found->address;
        s->items[found->value].mapped += e->size;
        if (end > found->end) {
            remove_within(s, found->end, end);
            gmd_intervals_after(&s->ranges, begin)->end = end;
        }
        return EXPANDABLE_OLD;
    }
    remove_within(s, e->address, end);
    note_distances(s, e->address);
    if (!GMD_GROW(&s->items, &s->capacity, s->count + 1) ||
        !gmd_intervals_insert(&s->ranges, e->address, end, s->count)) {
        return EXPANDABLE_NO_MEMORY;
    }
    s->items[s->count++] =
        (expandable_segment){.mapped = e->size, .stream = e->stream, .device = e->device};
    return EXPANDABLE_NEW;
}

bool expandable_unmap(expandable_segments *s, const gmd_snapshot_event *e)
{
    const gmd_interval *found = find(s, e);
    if (!found || e->size > s->items[found->value].mapped) {
        return false;
    }
    s->items[found->value].mapped -= e->size;
    if (s->items[found->value].mapped == 0) {
        gmd_intervals_remove(&s->ranges, found->address);
    }
    return true;
}

void expandable_free(expandable_segments *s)
{
    gmd_intervals_free(&s->ranges);
    free(s->items);
    *s = (expandable_segments){0};
}
