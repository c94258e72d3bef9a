#include "expandable.h"

#include "gmd_grow.h"
#include "gmd_min.h"

#include <stdlib.h>

/* A page right after the last one belongs to the same segment: reservations are far larger than
 * what is mapped of them, so two never touch. */
static expandable_segment *find(const expandable_segments *s, const gmd_snapshot_event *e)
{
    for (size_t i = 0; i < s->count; i++) {
        expandable_segment *one = &s->items[i];
        if (one->device == e->device && one->stream == e->stream && e->address >= one->begin &&
            e->address <= one->end) {
            return one;
        }
    }
    return NULL;
}

static void note_distances(expandable_segments *s, uint64_t begin)
{
    for (size_t i = 0; i < s->count; i++) {
        uint64_t other = s->items[i].begin;
        uint64_t distance = begin > other ? begin - other : other - begin;
        s->nearest = distance && (!s->nearest || distance < s->nearest) ? distance : s->nearest;
    }
}

expandable_answer expandable_map(expandable_segments *s, const gmd_snapshot_event *e)
{
    expandable_segment *found = find(s, e);
    if (found) {
        uint64_t end = e->address + e->size;
        found->end = gmd_max(end, found->end);
        found->mapped += e->size;
        return EXPANDABLE_OLD;
    }
    if (!GMD_GROW(&s->items, &s->capacity, s->count + 1)) {
        return EXPANDABLE_NO_MEMORY;
    }
    note_distances(s, e->address);
    s->items[s->count++] = (expandable_segment){.begin = e->address,
                                                .end = e->address + e->size,
                                                .mapped = e->size,
                                                .stream = e->stream,
                                                .device = e->device};
    return EXPANDABLE_NEW;
}

bool expandable_unmap(expandable_segments *s, const gmd_snapshot_event *e)
{
    expandable_segment *found = find(s, e);
    if (!found || e->size > found->mapped) {
        return false;
    }
    found->mapped -= e->size;
    if (found->mapped == 0) {
        *found = s->items[--s->count];
    }
    return true;
}

void expandable_free(expandable_segments *s)
{
    free(s->items);
    *s = (expandable_segments){0};
}
