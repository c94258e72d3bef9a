/* recording.c - from a snapshot's events to lifetimes.
 *
 * A first pass over the events pairs allocations with frees. What is freed without an allocation,
 * or is in the snapshot's segments without one, was there before the first event. A second pass
 * finds the sizes of blocks: an event has what was asked for, and how much of a free range the
 * allocator gave follows from what lies behind it. */
#include "gmd_recording.h"

#include "address_ranks.h"
#include "reserved_ranges.h"

#include "gmd_grow.h"
#include "gmd_min.h"
#include "gmd_recorded_settings.h"
#include "gmd_size.h"

#include <stdlib.h>
#include <string.h>

typedef struct builder {
    gmd_recording *r;
    const gmd_snapshot *snapshot;
    gmd_recorded_settings settings;
    address_ranks ranks;
    uint32_t
        *rank_list; /* of each address that the snapshot names, in the order of name_addresses */
    const uint32_t *next_rank;
    uint32_t *open;          /* by rank: the block's lifetime; GMD_NO_LIFETIME */
    uint32_t *lifetime_rank; /* by lifetime */
    rank_set blocks;         /* where blocks begin now */
    bool *is_named;          /* by rank: a block began there that an event allocated or freed */
    reserved_ranges reserved;
    size_t lifetime_capacity, rank_capacity;
    bool has_later_block; /* in the segments */
    size_t unexplained;   /* blocks and ranges that were there before the first event */
} builder;

static bool has_block(const gmd_snapshot_event *e)
{
    return e->action == GMD_ACTION_ALLOC || e->action == GMD_ACTION_FREE_REQUESTED ||
           e->action == GMD_ACTION_FREE_COMPLETED;
}

static bool takes_memory(const gmd_snapshot_event *e)
{
    return e->action == GMD_ACTION_SEGMENT_ALLOC || e->action == GMD_ACTION_SEGMENT_MAP;
}

static bool gives_memory(const gmd_snapshot_event *e)
{
    return e->action == GMD_ACTION_SEGMENT_FREE || e->action == GMD_ACTION_SEGMENT_UNMAP;
}

static uint32_t moment_of(size_t event)
{
    return (uint32_t)event + 1;
}

/* --- addresses ------------------------------------------------------------------------------- */

/* Every pass over the events, and then over the segments, meets the addresses in this order: one of
 * a block, two of a range. */
static size_t name_addresses(const builder *b, uint64_t *to)
{
    const gmd_snapshot *s = b->snapshot;
    size_t count = 0;
    for (size_t i = 0; i < s->event_count; i++) {
        const gmd_snapshot_event *e = &s->events[i];
        bool is_range = takes_memory(e) || gives_memory(e);
        if (e->device == b->r->device && (is_range || has_block(e))) {
            to[count++] = e->address;
            if (is_range) {
                to[count++] = e->address + e->size;
            }
        }
    }
    for (size_t i = 0; i < s->segment_count; i++) {
        const gmd_snapshot_segment *segment = &s->segments[i];
        if (segment->device == b->r->device) {
            to[count++] = segment->address;
            to[count++] = segment->address + segment->total_size;
            for (size_t k = 0; k < segment->block_count; k++) {
                to[count++] = s->blocks[segment->first_block + k].address;
            }
        }
    }
    return count;
}

static bool rank_addresses(builder *b)
{
    const gmd_snapshot *s = b->snapshot;
    size_t most = 2 * s->event_count + 2 * s->segment_count + s->block_count + 1;
    uint64_t *addresses = malloc(most * sizeof *addresses);
    b->rank_list = malloc(most * sizeof *b->rank_list);
    bool ok = addresses && b->rank_list &&
              address_ranks_make(&b->ranks, addresses, b->rank_list, name_addresses(b, addresses));
    free(addresses);
    b->next_rank = b->rank_list;
    return ok;
}

/* --- the first pass: what belongs together --------------------------------------------------- */

static bool add_lifetime(builder *b, uint32_t rank, const gmd_lifetime *lifetime, uint32_t *index)
{
    gmd_recording *r = b->r;
    if (r->lifetime_count == GMD_NO_LIFETIME - 1 ||
        !GMD_GROW(&r->lifetimes, &b->lifetime_capacity, r->lifetime_count + 1) ||
        !GMD_GROW(&b->lifetime_rank, &b->rank_capacity, r->lifetime_count + 1)) {
        return false;
    }
    *index = (uint32_t)r->lifetime_count++;
    r->lifetimes[*index] = *lifetime;
    r->lifetimes[*index].address = b->ranks.addresses[rank];
    b->lifetime_rank[*index] = rank;
    return true;
}

static bool note_alloc(builder *b, size_t event, uint32_t rank)
{
    const gmd_snapshot_event *e = &b->snapshot->events[event];
    if (b->open[rank] != GMD_NO_LIFETIME && !b->snapshot->is_run) {
        b->r->contradictions++;
        return true;
    }
    const gmd_lifetime lifetime = {.requested = e->size,
                                   .stream = e->stream,
                                   .born = moment_of(event),
                                   .freed = GMD_NEVER,
                                   .released = GMD_NEVER,
                                   .origin = e->origin};
    return add_lifetime(b, rank, &lifetime, &b->open[rank]) &&
           (b->r->lifetime_of_event[event] = b->open[rank], true);
}

/* A block that is freed, and that no event allocated: it was there before the first. */
static bool note_unexplained_free(builder *b, size_t event, uint32_t rank)
{
    const gmd_snapshot_event *e = &b->snapshot->events[event];
    const gmd_lifetime lifetime = {.requested = e->size,
                                   .size = gmd_recorded_block_size(&b->settings, e->size),
                                   .stream = e->stream,
                                   .born = GMD_BEFORE,
                                   .freed = GMD_NEVER,
                                   .released = GMD_NEVER};
    b->unexplained++;
    return add_lifetime(b, rank, &lifetime, &b->open[rank]);
}

static bool note_free(builder *b, size_t event, uint32_t rank)
{
    uint32_t moment = moment_of(event);
    bool is_request = b->snapshot->events[event].action == GMD_ACTION_FREE_REQUESTED;
    bool is_unexplained = b->open[rank] == GMD_NO_LIFETIME;
    if (is_unexplained && !note_unexplained_free(b, event, rank)) {
        return false;
    }
    gmd_lifetime *lifetime = &b->r->lifetimes[b->open[rank]];
    if (is_request && lifetime->freed != GMD_NEVER) {
        b->r->contradictions++;
        return true;
    }
    b->r->lifetime_of_event[event] = b->open[rank];
    if (lifetime->freed == GMD_NEVER) { /* a completion alone: it waited since before */
        lifetime->freed = is_unexplained && !is_request ? GMD_BEFORE : moment;
    }
    if (!is_request) {
        lifetime->released = moment;
        b->open[rank] = GMD_NO_LIFETIME;
    }
    return true;
}

static gmd_reserved range_of(const gmd_snapshot_event *e, uint32_t taken, uint32_t given)
{
    return (gmd_reserved){.stream = e->stream,
                          .taken = taken,
                          .given = given,
                          .origin = taken == GMD_BEFORE ? 0 : e->origin,
                          .is_mapped = e->action == GMD_ACTION_SEGMENT_MAP ||
                                       e->action == GMD_ACTION_SEGMENT_UNMAP};
}

static bool note_range(builder *b, size_t event, uint32_t start, uint32_t end)
{
    const gmd_snapshot_event *e = &b->snapshot->events[event];
    if (gives_memory(e)) {
        gmd_reserved unknown = range_of(e, GMD_BEFORE, moment_of(event));
        return reserved_ranges_give(&b->reserved, start, end, &unknown, &b->unexplained);
    }
    gmd_reserved range = range_of(e, moment_of(event), GMD_NEVER);
    bool is_new;
    bool ok = reserved_ranges_take(&b->reserved, start, end, &range, &is_new);
    b->r->contradictions += ok && !is_new && e->size > 0;
    return ok;
}

static bool note_event(builder *b, size_t event)
{
    const gmd_snapshot_event *e = &b->snapshot->events[event];
    gmd_recording *r = b->r;
    r->first = r->first ? r->first : moment_of(event);
    r->last = moment_of(event);
    r->event_count++;
    r->oom_count += e->action == GMD_ACTION_OOM;
    if (has_block(e)) {
        uint32_t rank = *b->next_rank++;
        b->is_named[rank] = true;
        return e->action == GMD_ACTION_ALLOC ? note_alloc(b, event, rank)
                                             : note_free(b, event, rank);
    }
    if (takes_memory(e) || gives_memory(e)) {
        b->next_rank += 2;
        return note_range(b, event, b->next_rank[-2], b->next_rank[-1]);
    }
    return true;
}

static bool note_events(builder *b)
{
    const gmd_snapshot *s = b->snapshot;
    for (size_t i = 0; i < s->event_count; i++) {
        b->r->lifetime_of_event[i] = GMD_NO_LIFETIME;
        if (s->events[i].device == b->r->device && !note_event(b, i)) {
            return false;
        }
    }
    return true;
}

/* --- the snapshot's segments, which are of its end ------------------------------------------- */

/* Calls `function` with each segment of the device, the ranks of its ends, and those of its blocks.
 */
typedef bool segment_function(builder *b, const gmd_snapshot_segment *segment,
                              const uint32_t ends[2], const uint32_t *blocks);

static bool visit_segments(builder *b, segment_function *function)
{
    const gmd_snapshot *s = b->snapshot;
    const uint32_t *rank = b->next_rank;
    bool ok = true;
    for (size_t i = 0; ok && i < s->segment_count; i++) {
        const gmd_snapshot_segment *segment = &s->segments[i];
        if (segment->device == b->r->device) {
            ok = function(b, segment, rank, rank + 2);
            rank += 2 + segment->block_count;
        }
    }
    return ok;
}

/* What the events say is there at the end, and the segments have, is taken off `live`. */
typedef struct live_count {
    uint64_t blocks, reserved;
} live_count;

static live_count count_live(const builder *b)
{
    live_count live = {0};
    for (size_t i = 0; i < b->r->lifetime_count; i++) {
        live.blocks += b->r->lifetimes[i].released == GMD_NEVER;
    }
    for (size_t i = 0; i < b->reserved.count; i++) {
        live.reserved += b->reserved.items[i].given == GMD_NEVER ? b->reserved.items[i].size : 0;
    }
    return live;
}

/* A block at its address that serves another request is of later than the last event. */
static void note_size(gmd_lifetime *lifetime, const gmd_snapshot_block *block)
{
    if (block->requested_size == 0 || block->requested_size == lifetime->requested) {
        lifetime->size = block->size;
    }
}

static bool note_found(builder *b, const gmd_snapshot_segment *segment, const uint32_t ends[2],
                       const uint32_t *blocks)
{
    for (size_t k = 0; k < segment->block_count; k++) {
        const gmd_snapshot_block *block = &b->snapshot->blocks[segment->first_block + k];
        uint32_t index = b->open[blocks[k]];
        if (block->state != GMD_BLOCK_INACTIVE && index != GMD_NO_LIFETIME) {
            note_size(&b->r->lifetimes[index], block);
        }
    }
    for (uint32_t at = rank_set_next(&b->reserved.starts, ends[0]); at != NO_RANK && at < ends[1];
         at = rank_set_next(&b->reserved.starts, at + 1)) {
        gmd_reserved *range = &b->reserved.items[b->reserved.at[at]];
        range->is_private = segment->pool_id[0] || segment->pool_id[1];
    }
    return true;
}

/* A block that no event explains cannot have been there from the start where an event had another
 * one in its place: it is of after the last event. */
static bool note_later_block(builder *b, const gmd_snapshot_segment *segment,
                             const uint32_t ends[2], const uint32_t *blocks)
{
    for (size_t k = 0; k < segment->block_count; k++) {
        uint32_t end = k + 1 < segment->block_count ? blocks[k + 1] : ends[1];
        bool is_unexplained =
            b->snapshot->blocks[segment->first_block + k].state != GMD_BLOCK_INACTIVE &&
            b->open[blocks[k]] == GMD_NO_LIFETIME;
        for (uint32_t rank = blocks[k]; is_unexplained && rank < end; rank++) {
            b->has_later_block = b->has_later_block || b->is_named[rank];
        }
    }
    return true;
}

/* Blocks that the events left and that the segments have have their size now. */
static bool ends_early(const builder *b)
{
    if (b->has_later_block) {
        return true;
    }
    uint64_t reserved = 0;
    for (size_t i = 0; i < b->snapshot->segment_count; i++) {
        const gmd_snapshot_segment *segment = &b->snapshot->segments[i];
        reserved += segment->device == b->r->device ? segment->total_size : 0;
    }
    for (size_t i = 0; i < b->r->lifetime_count; i++) {
        const gmd_lifetime *lifetime = &b->r->lifetimes[i];
        if (lifetime->released == GMD_NEVER && lifetime->size == 0) {
            return true;
        }
    }
    return count_live(b).reserved > reserved;
}

/* What segments of a later moment said of blocks that are there after the last event. */
static void forget_sizes(builder *b)
{
    for (size_t i = 0; i < b->r->lifetime_count; i++) {
        gmd_lifetime *lifetime = &b->r->lifetimes[i];
        if (lifetime->released == GMD_NEVER && lifetime->born != GMD_BEFORE) {
            lifetime->size = 0;
        }
    }
}

static bool add_unexplained_block(builder *b, const gmd_snapshot_segment *segment,
                                  const gmd_snapshot_block *block, uint32_t rank)
{
    bool waits = block->state == GMD_BLOCK_PENDING_FREE;
    const gmd_lifetime lifetime = {.requested = block->requested_size,
                                   .size = block->size,
                                   .stream = segment->stream,
                                   .born = GMD_BEFORE,
                                   .freed = waits ? GMD_BEFORE : GMD_NEVER,
                                   .released = GMD_NEVER,
                                   .origin = block->origin};
    b->unexplained++;
    return add_lifetime(b, rank, &lifetime, &b->open[rank]);
}

static bool note_unexplained(builder *b, const gmd_snapshot_segment *segment,
                             const uint32_t ends[2], const uint32_t *blocks)
{
    for (size_t k = 0; k < segment->block_count; k++) {
        const gmd_snapshot_block *block = &b->snapshot->blocks[segment->first_block + k];
        if (block->state == GMD_BLOCK_INACTIVE || b->open[blocks[k]] != GMD_NO_LIFETIME) {
            continue;
        }
        if (b->r->ends_early) {
            b->r->later_blocks++;
        } else if (!add_unexplained_block(b, segment, block, blocks[k])) {
            return false;
        }
    }
    const gmd_reserved unknown = {.stream = segment->stream,
                                  .taken = GMD_BEFORE,
                                  .given = GMD_NEVER,
                                  .origin = segment->origin,
                                  .is_mapped = segment->is_expandable,
                                  .is_private = segment->pool_id[0] || segment->pool_id[1]};
    return b->r->ends_early ||
           reserved_ranges_fill(&b->reserved, ends[0], ends[1], &unknown, &b->unexplained);
}

static bool note_segments(builder *b)
{
    if (!visit_segments(b, note_found) || !visit_segments(b, note_later_block)) {
        return false;
    }
    b->r->ends_early = b->snapshot->has_events && ends_early(b);
    if (b->r->ends_early) {
        forget_sizes(b);
    }
    bool ok = visit_segments(b, note_unexplained);
    b->r->begins_late = b->unexplained > 0;
    return ok;
}

/* --- reserved memory, step by step ----------------------------------------------------------- */

static int compare_reserved(const void *a, const void *b)
{
    const gmd_reserved *x = a, *y = b;
    if (x->taken != y->taken) {
        return x->taken < y->taken ? -1 : 1;
    }
    return (x->address > y->address) - (x->address < y->address);
}

static int compare_steps(const void *a, const void *b)
{
    const gmd_reserved_step *x = a, *y = b;
    if (x->moment != y->moment) {
        return x->moment < y->moment ? -1 : 1;
    }
    return (x->range > y->range) - (x->range < y->range);
}

static bool order_reserved(builder *b)
{
    gmd_recording *r = b->r;
    r->reserved = b->reserved.items;
    r->reserved_count = b->reserved.count;
    b->reserved.items = NULL;
    r->steps = malloc((2 * r->reserved_count + 1) * sizeof *r->steps);
    if (!r->steps) {
        return false;
    }
    if (r->reserved_count) {
        qsort(r->reserved, r->reserved_count, sizeof *r->reserved, compare_reserved);
    }
    for (size_t i = 0; i < r->reserved_count; i++) {
        const gmd_reserved *range = &r->reserved[i];
        r->steps[r->step_count++] = (gmd_reserved_step){range->taken, (uint32_t)i, false};
        if (range->given != GMD_NEVER) {
            r->steps[r->step_count++] = (gmd_reserved_step){range->given, (uint32_t)i, true};
        }
    }
    qsort(r->steps, r->step_count, sizeof *r->steps, compare_steps);
    return true;
}

/* --- the second pass: sizes ------------------------------------------------------------------ */

/* c10's should_split(): what is left of the free range becomes a block of its own, or stays. */
static uint64_t size_of_block(const builder *b, uint64_t requested, uint64_t room)
{
    const gmd_recorded_settings *s = &b->settings;
    uint64_t size = gmd_recorded_block_size(s, requested);
    if (room <= size) {
        return size;
    }
    bool is_split = gmd_recorded_is_small(s, requested)
                        ? room - size >= GMD_RECORDED_BLOCK_UNIT
                        : size < s->max_split_bytes && room - size > GMD_MIB;
    return is_split ? size : room;
}

/* Bytes from an address to the next block, or to the end of its segment. 0, so that the block has
 * no more than it needs: in pages of an expandable segment, and in memory that is not known. */
static uint64_t room_at(const builder *b, uint32_t rank)
{
    uint32_t start = rank_set_previous(&b->reserved.starts, rank);
    if (start == NO_RANK) {
        return 0;
    }
    const gmd_reserved *range = &b->r->reserved[b->reserved.at[start]];
    uint64_t address = b->ranks.addresses[rank], end = range->address + range->size;
    if (address >= end || range->is_mapped) {
        return 0;
    }
    uint32_t next = rank_set_next(&b->blocks, rank + 1);
    return next == NO_RANK ? end - address : gmd_min(end, b->ranks.addresses[next]) - address;
}

static uint32_t rank_of(const address_ranks *ranks, uint64_t address)
{
    uint32_t low = 0, high = ranks->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ranks->addresses[middle] < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The ranges that are reserved after the event of a moment. */
static void follow_reserved(builder *b, uint32_t moment, size_t *next)
{
    const gmd_recording *r = b->r;
    for (; *next < r->step_count && r->steps[*next].moment <= moment; (*next)++) {
        const gmd_reserved_step *step = &r->steps[*next];
        uint32_t rank = rank_of(&b->ranks, r->reserved[step->range].address);
        if (step->is_given) {
            rank_set_remove(&b->reserved.starts, rank);
        } else {
            rank_set_add(&b->reserved.starts, rank);
            b->reserved.at[rank] = step->range;
        }
    }
}

static void size_blocks(builder *b)
{
    gmd_recording *r = b->r;
    size_t step = 0;
    for (size_t i = 0; i < r->lifetime_count; i++) {
        if (r->lifetimes[i].born == GMD_BEFORE) {
            rank_set_add(&b->blocks, b->lifetime_rank[i]);
        }
    }
    for (size_t i = 0; i < b->snapshot->event_count; i++) {
        uint32_t index = r->lifetime_of_event[i], moment = moment_of(i);
        if (index == GMD_NO_LIFETIME) {
            continue;
        }
        gmd_lifetime *lifetime = &r->lifetimes[index];
        follow_reserved(b, moment, &step);
        if (lifetime->born == moment) {
            uint64_t size =
                size_of_block(b, lifetime->requested, room_at(b, b->lifetime_rank[index]));
            lifetime->size = lifetime->size ? lifetime->size : size;
            rank_set_add(&b->blocks, b->lifetime_rank[index]);
        } else if (lifetime->released == moment) {
            rank_set_remove(&b->blocks, b->lifetime_rank[index]);
        }
    }
}

static bool find_sizes(builder *b)
{
    rank_set_free(&b->reserved.starts);
    if (!rank_set_make(&b->reserved.starts, b->ranks.count) ||
        !rank_set_make(&b->blocks, b->ranks.count)) {
        return false;
    }
    size_blocks(b);
    return true;
}

/* --- amounts --------------------------------------------------------------------------------- */

static gmd_amount amount_at_start(const gmd_recording *r)
{
    gmd_amount amount = {0};
    for (size_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        amount.allocated += gmd_is_allocated_at(l, GMD_BEFORE) ? l->size : 0;
        amount.active += gmd_is_active_at(l, GMD_BEFORE) ? l->size : 0;
    }
    for (size_t i = 0; i < r->reserved_count; i++) {
        amount.reserved +=
            gmd_is_reserved_at(&r->reserved[i], GMD_BEFORE) ? r->reserved[i].size : 0;
    }
    return amount;
}

static void step_block(const gmd_recording *r, size_t event, gmd_amount *amount)
{
    uint32_t index = r->lifetime_of_event[event], moment = moment_of(event);
    if (index == GMD_NO_LIFETIME) {
        return;
    }
    const gmd_lifetime *l = &r->lifetimes[index];
    if (l->born == moment) {
        amount->allocated += l->size;
        amount->active += l->size;
    }
    amount->allocated -= l->freed == moment ? l->size : 0;
    amount->active -= l->released == moment ? l->size : 0;
}

static void step_reserved(const gmd_recording *r, uint32_t moment, size_t *next, gmd_amount *amount)
{
    for (; *next < r->step_count && r->steps[*next].moment <= moment; (*next)++) {
        const gmd_reserved_step *step = &r->steps[*next];
        uint64_t size = r->reserved[step->range].size;
        if (step->is_given) {
            amount->reserved -= size;
        } else if (step->moment != GMD_BEFORE) {
            amount->reserved += size;
        }
    }
}

void gmd_recording_walk(const gmd_recording *r, gmd_amount_function *function, void *context)
{
    gmd_amount amount = r->at_start;
    size_t step = 0;
    for (size_t i = r->first ? r->first - 1 : 0; i < r->last; i++) {
        if (r->snapshot->events[i].device == r->device) {
            step_block(r, i, &amount);
            step_reserved(r, moment_of(i), &step, &amount);
            function(context, moment_of(i), &amount);
        }
    }
}

uint32_t gmd_moment_after(const gmd_recording *r, uint64_t time_us)
{
    uint32_t low = r->first ? r->first : 1, high = r->last + 1; /* moments begin with 1 */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->snapshot->events[middle - 1].time_us <= time_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void raise_to(uint64_t *peak, uint32_t *at, uint64_t value, uint32_t moment)
{
    if (value > *peak) {
        *peak = value;
        *at = moment;
    }
}

static void note_peak(void *context, uint32_t moment, const gmd_amount *amount)
{
    gmd_recording *r = context;
    gmd_peak *peak = &r->peak;
    raise_to(&peak->amount.allocated, &peak->allocated_at, amount->allocated, moment);
    raise_to(&peak->amount.active, &peak->active_at, amount->active, moment);
    raise_to(&peak->amount.reserved, &peak->reserved_at, amount->reserved, moment);
    r->at_end = *amount;
}

static void find_amounts(gmd_recording *r)
{
    r->at_start = r->at_end = amount_at_start(r);
    r->peak = (gmd_peak){.amount = r->at_start};
    gmd_recording_walk(r, note_peak, r);
}

/* --- the end --------------------------------------------------------------------------------- */

/* A job that goes on after a refusal asks for more than what an error's message takes. One that has
 * survived a refusal is taken to survive the next one, too. */
static uint32_t refusal_that_ended(const gmd_recording *r)
{
    const gmd_snapshot *s = r->snapshot;
    uint64_t allocated = 0;
    uint32_t first = 0;
    for (size_t i = r->first; i > 0 && i <= r->last; i++) {
        const gmd_snapshot_event *e = &s->events[i - 1];
        if (e->device == r->device && e->action == GMD_ACTION_OOM && !first) {
            first = (uint32_t)i;
        } else if (e->device == r->device && e->action == GMD_ACTION_ALLOC && first) {
            allocated += e->size;
        }
    }
    return first && allocated < s->events[first - 1].size / 2 ? first : 0;
}

/* --- the whole ------------------------------------------------------------------------------- */

static bool prepare(builder *b)
{
    if (!rank_addresses(b) || !reserved_ranges_make(&b->reserved, &b->ranks)) {
        return false;
    }
    b->r->lifetime_of_event =
        malloc((b->snapshot->event_count + 1) * sizeof *b->r->lifetime_of_event);
    b->open = malloc(((size_t)b->ranks.count + 1) * sizeof *b->open);
    for (uint32_t rank = 0; b->open && rank < b->ranks.count; rank++) {
        b->open[rank] = GMD_NO_LIFETIME;
    }
    b->is_named = calloc((size_t)b->ranks.count + 1, sizeof *b->is_named);
    return b->open && b->r->lifetime_of_event && b->is_named;
}

static void release(builder *b)
{
    address_ranks_free(&b->ranks);
    reserved_ranges_free(&b->reserved);
    rank_set_free(&b->blocks);
    free(b->is_named);
    free(b->rank_list);
    free(b->open);
    free(b->lifetime_rank);
}

gmd_status gmd_recording_make(gmd_recording *r, const gmd_snapshot *snapshot, uint8_t device,
                              gmd_error *error)
{
    *r = (gmd_recording){.snapshot = snapshot, .device = device};
    builder b = {.r = r, .snapshot = snapshot, .settings = gmd_recorded_settings_of(snapshot)};
    bool ok =
        prepare(&b) && note_events(&b) && note_segments(&b) && order_reserved(&b) && find_sizes(&b);
    release(&b);
    if (!ok) {
        gmd_recording_free(r);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the recording's %zu events",
                        snapshot->event_count);
    }
    find_amounts(r);
    r->ended_by_oom = r->oom_count ? refusal_that_ended(r) : 0;
    return GMD_OK;
}

void gmd_recording_free(gmd_recording *r)
{
    free(r->lifetimes);
    free(r->lifetime_of_event);
    free(r->reserved);
    free(r->steps);
    *r = (gmd_recording){0};
}
