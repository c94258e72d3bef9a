#include "gmd_past.h"

#include "gmd_min.h"

#include <stdlib.h>

void gmd_past_drop(gmd_past *p)
{
    if (p && --p->references == 0) {
        free(p);
    }
}

uint64_t gmd_past_on(const gmd_past *p, const gmd_progress *on)
{
    uint32_t from = 0, to = p ? p->count : 0;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        const gmd_past_item *item = &p->items[middle];
        if (item->on == on) {
            return item->ticket;
        }
        if (item->on->id < on->id) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return 0;
}

/* One of the sorted lists that are joined. */
typedef struct cursor {
    const gmd_past_item *next, *end;
} cursor;

static cursor cursor_of(const gmd_past *p)
{
    return p ? (cursor){p->items, p->items + p->count} : (cursor){NULL, NULL};
}

/* Takes the next stream's item off all lists that have one: the largest of its tickets. */
static gmd_past_item take_next(cursor *lists, size_t count)
{
    gmd_past_item least = {NULL, 0};
    for (size_t i = 0; i < count; i++) {
        const gmd_past_item *item = lists[i].next;
        if (item != lists[i].end && (!least.on || item->on->id < least.on->id)) {
            least = *item;
        }
    }
    for (size_t i = 0; i < count; i++) {
        const gmd_past_item *item = lists[i].next;
        if (item != lists[i].end && item->on == least.on) {
            least.ticket = gmd_max(item->ticket, least.ticket);
            lists[i].next++;
        }
    }
    return least;
}

bool gmd_past_join(const gmd_past *a, const gmd_past *b, gmd_past_item item,
                   const gmd_progress *self, gmd_past **out)
{
    uint32_t most = (a ? a->count : 0) + (b ? b->count : 0) + 1;
    gmd_past *joined = malloc(sizeof *joined + most * sizeof joined->items[0]);
    if (!joined) {
        return false;
    }
    joined->references = 1;
    joined->count = 0;
    cursor lists[] = {cursor_of(a), cursor_of(b), {&item, &item + 1}};
    for (gmd_past_item next; (next = take_next(lists, 3)).on;) {
        if (next.on != self && next.on->known < next.ticket) {
            joined->items[joined->count++] = next;
        }
    }
    *out = joined;
    return true;
}
