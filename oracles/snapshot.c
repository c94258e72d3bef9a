/* snapshot - blocks tile their segments, segments lie in memory that the device handed out, the
 * allocated blocks are exactly the live ones, the sums are the statistics; and, where the allocator
 * promises it, no two free neighbours stay unmerged.
 *
 * Looking costs time in proportion to the number of blocks. It is done when the workload is over,
 * when everything was freed, after the first refusals, and in between ever more rarely, by the
 * number of requests, so that a run can be repeated. */
#include "list.h"
#include "wording.h"

#include "gmd_grow.h"
#include "gmd_min.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_LOOK = 32, REQUESTS_A_BLOCK = 32, EVERY_REFUSAL_UP_TO = 16 };

typedef struct sums {
    uint64_t allocated, active, reserved, requested, inactive_split;
    uint64_t allocated_count, segment_count;
    bool has_expandable;
} sums;

typedef struct inspection {
    gmd_block_info *blocks;
    size_t count, capacity;
    bool has_no_memory;
    uint64_t requests, last_look, interval, refusals;
    bool was_restored; /* a private pool: its blocks may count with all of their sizes */
} inspection;

static const char *const state_names[] = {"free", "allocated", "pending"};

static void *create(void)
{
    inspection *l = calloc(1, sizeof *l);
    if (l) {
        l->interval = FIRST_LOOK;
    }
    return l;
}

static void destroy(void *state)
{
    inspection *l = state;
    free(l->blocks);
    free(l);
}

static void ignore(void *context, const gmd_block_info *block)
{
    (void)context;
    (void)block;
}

static const char *blind_spot(const gmd_view *view)
{
    if (!view->ask.walk) {
        return "the allocator exports no gmd_walk";
    }
    return view->ask.walk(view->ask.context, view->device, ignore, NULL) == 0
               ? NULL
               : "gmd_walk failed before the first request";
}

static void keep(void *context, const gmd_block_info *block)
{
    inspection *l = context;
    if (!GMD_GROW(&l->blocks, &l->capacity, l->count + 1)) {
        l->has_no_memory = true;
        return;
    }
    l->blocks[l->count++] = *block;
}

/* --- one segment after the other --------------------------------------------------------- */

static uint64_t end_of(const gmd_block_info *b)
{
    return b->address + b->size;
}

/* `before` is the block before it in the walk; NULL: there is none. */
static bool check_place(const gmd_view *view, const gmd_block_info *b, const gmd_block_info *before,
                        gmd_judge *judge)
{
    bool is_first = !before || before->segment_address != b->segment_address;
    uint64_t due = is_first ? b->segment_address : end_of(before);
    uint64_t segment_end = b->segment_address + b->segment_size;
    if (b->state < 0 || b->state > 2) {
        gmd_violation_add(judge, GMD_KIND(snapshot, unknown_state), GMD_NO_PARTIES,
                          "device %d: the block at 0x%" PRIx64 " is in the unknown state %d",
                          view->device, b->address, b->state);
    } else if (b->address != due || !b->size || b->size > segment_end - b->address) {
        gmd_violation_add(
            judge, GMD_KIND(snapshot, misplaced), GMD_PARTIES({"state", state_names[b->state]}),
            "device %d: blocks do not tile their segment: in the segment of %s at 0x%" PRIx64
            " the %s block at 0x%" PRIx64 " has %s, and the next one was due at 0x%" PRIx64
            ": part of the segment is lost, or belongs to two blocks",
            view->device, BYTES(b->segment_size), b->segment_address, state_names[b->state],
            b->address, BYTES(b->size), due);
    } else if (is_first && before &&
               before->segment_address + before->segment_size > b->segment_address) {
        gmd_violation_add(judge, GMD_KIND(snapshot, segments_overlap), GMD_NO_PARTIES,
                          "device %d: the segments at 0x%" PRIx64 " (%s) and 0x%" PRIx64
                          " overlap or are not in the order of their addresses",
                          view->device, before->segment_address, BYTES(before->segment_size),
                          b->segment_address);
    } else {
        return true;
    }
    return false;
}

static bool check_end_of_segment(const gmd_view *view, const gmd_block_info *last, gmd_judge *judge)
{
    uint64_t end = last->segment_address + last->segment_size, bad = 0;
    if (end_of(last) != end) {
        gmd_violation_add(
            judge, GMD_KIND(snapshot, short_segment), GMD_NO_PARTIES,
            "device %d: blocks do not tile their segment: the last block in the "
            "segment of %s at 0x%" PRIx64 " ends at 0x%" PRIx64 ", and the segment at 0x%" PRIx64,
            view->device, BYTES(last->segment_size), last->segment_address, end_of(last), end);
        return false;
    }
    if (view->ask.is_backed && !view->ask.is_backed(view->ask.context, last->segment_address,
                                                    last->segment_size, view->device, &bad)) {
        gmd_violation_add(judge, GMD_KIND(snapshot, no_memory), GMD_NO_PARTIES,
                          "device %d: the allocator lists a segment of %s at 0x%" PRIx64
                          ", and the device has handed out no memory at 0x%" PRIx64 " in it",
                          view->device, BYTES(last->segment_size), last->segment_address, bad);
        return false;
    }
    return true;
}

static bool are_mergeable(const gmd_block_info *a, const gmd_block_info *b)
{
    return a->segment_address == b->segment_address && a->state == 0 && b->state == 0 &&
           a->stream == b->stream && a->is_large == b->is_large && a->pool_id[0] == b->pool_id[0] &&
           a->pool_id[1] == b->pool_id[1];
}

static bool check_merged(const gmd_view *view, const gmd_block_info *a, const gmd_block_info *b,
                         gmd_judge *judge)
{
    if (!(view->allocator.promises & GMD_PROMISE_COALESCING) || !are_mergeable(a, b)) {
        return true;
    }
    gmd_violation_add(
        judge, GMD_KIND(snapshot, unmerged), GMD_NO_PARTIES,
        "device %d: the free blocks of %s at 0x%" PRIx64 " and of %s at 0x%" PRIx64
        " are neighbours in one segment, of one stream and pool, and were not merged: "
        "a request of %s finds neither",
        view->device, BYTES(a->size), a->address, BYTES(b->size), b->address,
        BYTES(a->size + b->size));
    return false;
}

static bool check_segments(const inspection *l, const gmd_view *view, gmd_judge *judge)
{
    for (size_t i = 0; i < l->count; i++) {
        const gmd_block_info *b = &l->blocks[i], *before = i ? b - 1 : NULL;
        bool is_last = i + 1 == l->count || l->blocks[i + 1].segment_address != b->segment_address;
        if (!check_place(view, b, before, judge) ||
            (before && !check_merged(view, before, b, judge)) ||
            (is_last && !check_end_of_segment(view, b, judge))) {
            return false;
        }
    }
    return true;
}

/* --- the live blocks --------------------------------------------------------------------- */

typedef struct live_check {
    const inspection *inspection;
    const gmd_view *view;
    gmd_judge *judge;
    uint64_t found, found_empty; /* blocks of the walk that are live ones; those of 0 B apart */
    bool has_failed;
} live_check;

static const gmd_block_info *find_block(const inspection *l, uint64_t address)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->blocks[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < l->count && l->blocks[low].address == address ? &l->blocks[low] : NULL;
}

/* That its request went to; or one whose blocks serve the default pool's rather than a refusal. */
static bool is_of_pool(const gmd_view *view, const gmd_block_info *b, uint32_t pool)
{
    bool is_lent =
        !pool && b->pool_id[1] && view->pools.lent >> gmd_pool_number((uint32_t)b->pool_id[1]) & 1;
    return !b->pool_id[0] && (b->pool_id[1] == pool || is_lent);
}

static void tell_pool(const live_check *c, const gmd_block_info *b, const gmd_live_block *live)
{
    char where[40] = "the default pool";
    if (live->pool) {
        snprintf(where, sizeof where, "private pool %" PRIu32, gmd_pool_number(live->pool));
    }
    gmd_violation_add(
        c->judge, GMD_KIND(snapshot, wrong_pool),
        GMD_PARTIES({"asked", live->pool ? "private" : "default"}),
        "device %d: the request of the live %s (request %" PRIu64
        ") went to %s, and gmd_walk shows the block in the pool {%" PRIu64 ", %" PRIu64 "}",
        c->view->device, BLOCK(c->view, live), live->born, where, b->pool_id[0], b->pool_id[1]);
}

/* A pointer that was handed out for no bytes need not be a block's, and several may be one's. */
static void check_live(void *context, const gmd_live_block *live)
{
    live_check *c = context;
    const gmd_block_info *b = find_block(c->inspection, live->address);
    bool is_there = b && b->state == 1;
    if (c->has_failed || !live->bytes) {
        c->found_empty += is_there;
        return;
    }
    if (is_there && !is_of_pool(c->view, b, live->pool)) {
        c->has_failed = true;
        tell_pool(c, b, live);
        return;
    }
    bool may_have_returned = c->inspection->was_restored && live->pool;
    if (is_there && b->size >= live->bytes &&
        (!b->requested_size || b->requested_size == live->bytes ||
         (may_have_returned && b->requested_size == b->size))) {
        c->found++;
        return;
    }
    c->has_failed = true;
    if (is_there) {
        gmd_violation_add(c->judge, GMD_KIND(snapshot, wrong_size), GMD_NO_PARTIES,
                          "device %d: gmd_walk shows the live %s (request %" PRIu64
                          ") with %s, of which %s were asked for",
                          c->view->device, BLOCK(c->view, live), live->born, BYTES(b->size),
                          BYTES(b->requested_size));
    } else {
        gmd_violation_add(c->judge, GMD_KIND(snapshot, live_block_missing),
                          GMD_PARTIES({"shown", !b ? "nothing" : state_names[b->state]}),
                          "device %d: the %s (request %" PRIu64 ") is live, and gmd_walk shows %s",
                          c->view->device, BLOCK(c->view, live), live->born,
                          !b              ? "no block there"
                          : b->state == 0 ? "a free block there: it will be handed out again"
                                          : "a block there that was freed and is pending");
    }
}

static bool check_live_set(const inspection *l, const gmd_view *view, const sums *s,
                           gmd_judge *judge)
{
    live_check c = {.inspection = l, .view = view, .judge = judge};
    view->ask.each_live(view->ask.context, view->device, check_live, &c);
    bool are_live = s->allocated_count >= c.found && s->allocated_count - c.found <= c.found_empty;
    if (!c.has_failed && !are_live) {
        gmd_violation_add(judge, GMD_KIND(snapshot, dead_block_shown), GMD_NO_PARTIES,
                          "device %d: gmd_walk shows %" PRIu64 " allocated blocks, and %" PRIu64
                          " of them are live: the others were freed, or never handed out",
                          view->device, s->allocated_count, c.found + c.found_empty);
        c.has_failed = true;
    }
    return !c.has_failed;
}

/* --- the sums ---------------------------------------------------------------------------- */

static sums add_up(const inspection *l)
{
    sums s = {0};
    for (size_t i = 0; i < l->count; i++) {
        const gmd_block_info *b = &l->blocks[i];
        bool is_first = i == 0 || b[-1].segment_address != b->segment_address;
        s.reserved += is_first ? b->segment_size : 0;
        s.segment_count += is_first;
        s.allocated += b->state == 1 ? b->size : 0;
        s.allocated_count += b->state == 1;
        s.active += b->state ? b->size : 0;
        s.requested += b->state ? b->requested_size : 0;
        s.inactive_split += !b->state && b->size != b->segment_size ? b->size : 0;
        s.has_expandable = s.has_expandable || b->is_expandable;
    }
    return s;
}

static void demand_sum(gmd_judge *judge, const gmd_view *view, const char *name, uint64_t figure,
                       uint64_t sum)
{
    if (figure != GMD_STAT_UNKNOWN && figure != sum) {
        gmd_violation_add(judge, GMD_KIND(snapshot, wrong_sum), GMD_PARTIES({"figure", name}),
                          "device %d: %s = %" PRIu64
                          ", and the blocks of gmd_walk add up to %" PRIu64,
                          view->device, name, figure, sum);
    }
}

/* The statistics count an expandable segment once; a walk shows one for each of its mapped
 * parts. */
static void check_sums(const gmd_view *view, const sums *s, gmd_judge *judge)
{
    const gmd_stats *stats = view->stats.now;
    demand_sum(judge, view, "allocated_bytes", stats->allocated_bytes, s->allocated);
    demand_sum(judge, view, "active_bytes", stats->active_bytes, s->active);
    demand_sum(judge, view, "reserved_bytes", stats->reserved_bytes, s->reserved);
    demand_sum(judge, view, "allocation_count", stats->allocation_count, s->allocated_count);
    if (s->requested || !view->live.bytes) { /* it may not keep what was asked for */
        demand_sum(judge, view, "requested_bytes", stats->requested_bytes, s->requested);
    }
    if (!s->has_expandable) {
        demand_sum(judge, view, "segment_count", stats->segment_count, s->segment_count);
    }
    if (!s->has_expandable && (view->allocator.promises & GMD_PROMISE_PYTORCH)) {
        demand_sum(judge, view, "inactive_split_bytes", stats->inactive_split_bytes,
                   s->inactive_split);
    }
}

/* --- when -------------------------------------------------------------------------------- */

static void inspect(inspection *l, const gmd_view *view, gmd_judge *judge)
{
    l->count = 0;
    l->has_no_memory = false;
    if (view->ask.walk(view->ask.context, view->device, keep, l) != 0) {
        gmd_violation_add(judge, GMD_KIND(snapshot, walk_failed), GMD_NO_PARTIES,
                          "device %d: gmd_walk failed after it had worked before", view->device);
    } else if (l->has_no_memory) {
        gmd_violation_add(judge, GMD_KIND(snapshot, no_host_memory), GMD_NO_PARTIES,
                          "gmd ran out of host memory after %zu blocks of gmd_walk", l->count);
    } else if (check_segments(l, view, judge)) {
        sums s = add_up(l);
        if (check_live_set(l, view, &s, judge) && view->stats.now) {
            check_sums(view, &s, judge);
        }
    }
    uint64_t least = FIRST_LOOK + l->count * REQUESTS_A_BLOCK;
    l->interval += l->interval / 4;
    l->interval = gmd_max(l->interval, least);
    l->last_look = l->requests;
}

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    inspection *l = state;
    l->requests++;
    l->refusals += view->out_of_memory;
    bool is_restore = view->request && view->request->op == GMD_OP_RESTORE_POOL;
    l->was_restored = l->was_restored || is_restore;
    bool is_early_refusal = view->out_of_memory && l->refusals <= EVERY_REFUSAL_UP_TO;
    if (l->requests - l->last_look >= l->interval || is_early_refusal || is_restore) {
        inspect(l, view, judge);
    }
}

static void when_over(void *state, const gmd_view *view, gmd_judge *judge)
{
    inspect(state, view, judge);
}

const gmd_oracle oracle_snapshot = {
    .entry = ORACLE_ENTRY(snapshot),
    .needs_quiet = true,
    .blind_spot = blind_spot,
    .create = create,
    .destroy = destroy,
    .after_request = after_request,
    .when_over = when_over,
    .at_end = when_over,
};
