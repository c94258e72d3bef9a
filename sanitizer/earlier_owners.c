#include "earlier_owners.h"

#include <stdlib.h>

#define SWEEP_LEAST 4096

earlier_owner *earlier_owner_create(const order_subject *subject, uint32_t count)
{
    earlier_owner *e = malloc(sizeof *e + count * sizeof e->marks[0]);
    if (e) {
        *e = (earlier_owner){.references = 1, .subject = *subject};
    }
    return e;
}

earlier_owner *earlier_owner_keep(earlier_owner *e)
{
    e->references++;
    return e;
}

void earlier_owner_drop(earlier_owner *e)
{
    if (e && --e->references == 0) {
        free(e);
    }
}

bool earlier_owner_is_over(const earlier_owner *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        if (!use_mark_is_over(&e->marks[i])) {
            return false;
        }
    }
    return true;
}

static earlier_owner *owner_in(const gmd_interval *range)
{
    return (earlier_owner *)(uintptr_t)range->value; /* NOLINT(performance-no-int-to-ptr) */
}

static void remove_range(earlier_owners *all, const gmd_interval *range)
{
    earlier_owner *e = owner_in(range);
    gmd_intervals_remove(&all->ranges, range->address);
    earlier_owner_drop(e);
}

void earlier_owners_free(earlier_owners *all)
{
    for (gmd_interval *i; (i = gmd_intervals_after(&all->ranges, 0)) != NULL;) {
        remove_range(all, i);
    }
    gmd_intervals_free(&all->ranges);
}

/* The set doubles before it is gone through again: O(1) for each range that was added. */
static void sweep(earlier_owners *all)
{
    uint64_t at = 0;
    for (gmd_interval *i; (i = gmd_intervals_after(&all->ranges, at)) != NULL;) {
        at = i->end;
        if (earlier_owner_is_over(owner_in(i))) {
            remove_range(all, i);
        }
    }
    all->sweep_at = 2 * all->ranges.count > SWEEP_LEAST ? 2 * all->ranges.count : SWEEP_LEAST;
}

/* What lies in [from, end) goes; of a range across either border the rest stays. NULL: nothing did.
 */
static earlier_owner *cut_first(earlier_owners *all, uint64_t from, uint64_t end)
{
    gmd_interval *i = gmd_intervals_after(&all->ranges, from);
    if (!i || i->address >= end) {
        return NULL;
    }
    earlier_owner *e = earlier_owner_keep(owner_in(i));
    uint64_t first = i->address, last = i->end;
    if (first < from) {
        i->end = from;
    } else {
        remove_range(all, i);
    }
    if (last > end && gmd_intervals_insert(&all->ranges, end, last, (uint64_t)(uintptr_t)e)) {
        earlier_owner_keep(e);
    }
    return e;
}

earlier_owner *earlier_owners_take(earlier_owners *all, uint64_t *from, uint64_t end)
{
    while (*from < end) {
        earlier_owner *e = cut_first(all, *from, end);
        if (!e) {
            *from = end;
        } else if (!earlier_owner_is_over(e)) {
            return e;
        } else {
            earlier_owner_drop(e);
        }
    }
    return NULL;
}

bool earlier_owners_add(earlier_owners *all, earlier_owner *e)
{
    uint64_t from = e->subject.address, end = from + e->subject.bytes;
    for (earlier_owner *other; (other = cut_first(all, from, end)) != NULL;) {
        earlier_owner_drop(other); /* two blocks with the same memory: the later one counts */
    }
    if (from >= end || !gmd_intervals_insert(&all->ranges, from, end, (uint64_t)(uintptr_t)e)) {
        return from >= end;
    }
    earlier_owner_keep(e);
    if (all->ranges.count > all->sweep_at) {
        sweep(all);
    }
    return true;
}
