#include "reserved_ranges.h"

#include "gmd_grow.h"

#include <stdlib.h>

bool reserved_ranges_make(reserved_ranges *s, const address_ranks *ranks)
{
    *s = (reserved_ranges){.ranks = ranks};
    s->at = malloc(((size_t)ranks->count + 1) * sizeof *s->at);
    if (s->at && rank_set_make(&s->starts, ranks->count)) {
        return true;
    }
    reserved_ranges_free(s);
    return false;
}

void reserved_ranges_free(reserved_ranges *s)
{
    rank_set_free(&s->starts);
    free(s->at);
    free(s->items);
    *s = (reserved_ranges){0};
}

static uint64_t address_of(const reserved_ranges *s, uint32_t rank)
{
    return s->ranks->addresses[rank];
}

static uint64_t end_of(const gmd_reserved *range)
{
    return range->address + range->size;
}

/* The start of the range that holds the address of a rank; NO_RANK. */
static uint32_t start_of(const reserved_ranges *s, uint32_t rank)
{
    uint32_t start = rank_set_previous(&s->starts, rank);
    return start != NO_RANK && address_of(s, rank) < end_of(&s->items[s->at[start]]) ? start
                                                                                     : NO_RANK;
}

const gmd_reserved *reserved_ranges_find(const reserved_ranges *s, uint32_t rank)
{
    uint32_t start = start_of(s, rank);
    return start == NO_RANK ? NULL : &s->items[s->at[start]];
}

/* False: no host memory. */
static bool add(reserved_ranges *s, const gmd_reserved *range, uint64_t address, uint64_t end)
{
    if (s->count == UINT32_MAX || !GMD_GROW(&s->items, &s->capacity, s->count + 1)) {
        return false;
    }
    gmd_reserved *added = &s->items[s->count++];
    *added = *range;
    added->address = address;
    added->size = end - address;
    return true;
}

static bool add_current(reserved_ranges *s, const gmd_reserved *range, uint32_t start, uint64_t end)
{
    s->at[start] = (uint32_t)s->count;
    if (!add(s, range, address_of(s, start), end)) {
        return false;
    }
    rank_set_add(&s->starts, start);
    return true;
}

bool reserved_ranges_take(reserved_ranges *s, uint32_t start, uint32_t end,
                          const gmd_reserved *range, bool *is_new)
{
    uint32_t next = rank_set_next(&s->starts, start);
    *is_new = start < end && start_of(s, start) == NO_RANK && (next == NO_RANK || next >= end);
    return !*is_new || add_current(s, range, start, address_of(s, end));
}

/* Makes the range that begins at `start` two, the second from rank `at` on. */
static bool split(reserved_ranges *s, uint32_t start, uint32_t at)
{
    gmd_reserved whole = s->items[s->at[start]];
    s->items[s->at[start]].size = address_of(s, at) - whole.address;
    return add_current(s, &whole, at, end_of(&whole));
}

static bool split_at(reserved_ranges *s, uint32_t rank)
{
    uint32_t start = start_of(s, rank);
    return start == NO_RANK || start == rank || split(s, start, rank);
}

static bool add_unknown(reserved_ranges *s, const gmd_reserved *unknown, uint32_t from,
                        uint64_t end, size_t *count)
{
    if (address_of(s, from) >= end) {
        return true;
    }
    (*count)++;
    return add(s, unknown, address_of(s, from), end);
}

/* The rank from which on a range does not reach: that of its end, which its giving or its segment
 * named when it was added. */
static uint32_t rank_behind(const reserved_ranges *s, uint32_t start, uint32_t limit)
{
    uint64_t end = end_of(&s->items[s->at[start]]);
    uint32_t low = start, high = limit;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (address_of(s, middle) < end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool reserved_ranges_give(reserved_ranges *s, uint32_t start, uint32_t end,
                          const gmd_reserved *unknown, size_t *unknown_count)
{
    if (!split_at(s, start) || !split_at(s, end)) {
        return false;
    }
    uint32_t from = start;
    for (uint32_t at = rank_set_next(&s->starts, start); at != NO_RANK && at < end;
         at = rank_set_next(&s->starts, from)) {
        if (!add_unknown(s, unknown, from, address_of(s, at), unknown_count)) {
            return false;
        }
        s->items[s->at[at]].given = unknown->given;
        rank_set_remove(&s->starts, at);
        from = rank_behind(s, at, end);
    }
    return add_unknown(s, unknown, from, address_of(s, end), unknown_count);
}

bool reserved_ranges_fill(reserved_ranges *s, uint32_t start, uint32_t end,
                          const gmd_reserved *unknown, size_t *unknown_count)
{
    uint32_t holder = start_of(s, start);
    uint32_t from = holder == NO_RANK ? start : rank_behind(s, holder, end);
    for (uint32_t at = rank_set_next(&s->starts, from); at != NO_RANK && at < end;
         at = rank_set_next(&s->starts, from)) {
        if (!add_unknown(s, unknown, from, address_of(s, at), unknown_count)) {
            return false;
        }
        from = rank_behind(s, at, end);
    }
    return add_unknown(s, unknown, from, address_of(s, end), unknown_count);
}
