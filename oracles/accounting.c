/* accounting - the statistics agree with the live set and with what the device handed out. Figures
 * that the allocator does not keep (GMD_STAT_UNKNOWN) take part in no check. */
#include "list.h"
#include "waiting.h"
#include "wording.h"

#include "gmd_abi.h"
#include "gmd_min.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct peaks {
    uint64_t allocated, reserved, active; /* the highest seen from outside, each device */
} peaks;

typedef struct figures_seen {
    peaks seen[GMD_MAX_DEVICES];
    waiting_blocks waiting;
    bool was_restored[GMD_MAX_DEVICES]; /* one of its private pools */
} figures_seen;

static void *create(void)
{
    return calloc(1, sizeof(figures_seen));
}

static const char *blind_spot(const gmd_view *view)
{
    if (view->stats.has_failed) {
        return "gmd_get_stats failed before the first request";
    }
    return view->stats.now ? NULL : "the allocator exports no statistics (gmd_get_stats)";
}

static bool is_known(uint64_t a, uint64_t b)
{
    return a != GMD_STAT_UNKNOWN && b != GMD_STAT_UNKNOWN;
}

/* What is compared: in one word, and as a sentence has it. */
typedef struct quantity {
    const char *name, *words;
    uint64_t value;
    const char *bytes; /* gmd_party_bytes of what is live; NULL: it does not matter */
} quantity;

#define STATISTIC(s, name) ((quantity){#name, #name, (s)->name, NULL})
#define REQUESTED(view)                                                                            \
    ((quantity){"requested_bytes", "requested_bytes", (view)->stats.now->requested_bytes,          \
                gmd_party_bytes((view)->live.bytes)})

static const quantity zero = {"nothing_live", "with everything freed it must be", 0, NULL};

static void tell_order(gmd_judge *judge, const quantity *low, const quantity *high)
{
    gmd_violation_add(
        judge, GMD_KIND(accounting, out_of_order),
        GMD_PARTIES({"figure", low->name}, {"above", high->name}, {"bytes", low->bytes}),
        "%s = %" PRIu64 " is more than %s = %" PRIu64, low->words, low->value, high->words,
        high->value);
}

static inline void demand_at_most(gmd_judge *judge, quantity low, quantity high)
{
    if (is_known(low.value, high.value) && low.value > high.value) {
        tell_order(judge, &low, &high);
    }
}

static void tell_wrong(gmd_judge *judge, const quantity *found, const quantity *truth)
{
    gmd_violation_add(
        judge, GMD_KIND(accounting, wrong),
        GMD_PARTIES({"figure", found->name}, {"truth", truth->name}, {"bytes", found->bytes}),
        "%s = %" PRIu64 ", but %s = %" PRIu64, found->words, found->value, truth->words,
        truth->value);
}

static inline void demand_equal(gmd_judge *judge, quantity found, quantity truth)
{
    if (is_known(found.value, truth.value) && found.value != truth.value) {
        tell_wrong(judge, &found, &truth);
    }
}

static void check_order(const gmd_view *view, gmd_judge *judge)
{
    const gmd_stats *s = view->stats.now;
    demand_at_most(judge, STATISTIC(s, allocated_bytes), STATISTIC(s, active_bytes));
    demand_at_most(judge, STATISTIC(s, active_bytes), STATISTIC(s, reserved_bytes));
    demand_at_most(judge, STATISTIC(s, allocated_bytes), STATISTIC(s, reserved_bytes));
    demand_at_most(judge, REQUESTED(view), STATISTIC(s, active_bytes));
    demand_at_most(judge, STATISTIC(s, inactive_split_bytes), STATISTIC(s, reserved_bytes));
    demand_at_most(judge, STATISTIC(s, allocated_bytes_peak), STATISTIC(s, active_bytes_peak));
    demand_at_most(judge, STATISTIC(s, active_bytes_peak), STATISTIC(s, reserved_bytes_peak));
    demand_at_most(judge, STATISTIC(s, allocated_bytes_peak), STATISTIC(s, reserved_bytes_peak));
    /* Mapped memory is reserved in no segment that PyTorch counts; a real device does not tell. */
    bool is_mapped = !view->figures.now || view->figures.now->mapped_bytes;
    if (s->reserved_bytes != GMD_STAT_UNKNOWN && s->segment_count != GMD_STAT_UNKNOWN &&
        (s->reserved_bytes == 0 || !is_mapped) &&
        (s->reserved_bytes != 0) != (s->segment_count != 0)) {
        gmd_violation_add(judge, GMD_KIND(accounting, segments), GMD_NO_PARTIES,
                          "reserved_bytes = %" PRIu64 " in segment_count = %" PRIu64,
                          s->reserved_bytes, s->segment_count);
    }
}

/* Counters only rise. That of refusals rises by one with each refusal and with nothing else, but a
 * request that fails by a planted fault, or with an error that `progress` tells, need not be a
 * refusal. */
static void check_counters(const gmd_view *view, gmd_judge *judge)
{
    const gmd_stats *now = view->stats.now, *before = view->stats.before;
    bool is_counted = now->num_ooms - before->num_ooms == (uint64_t)view->out_of_memory;
    bool is_another =
        (view->faults.hit || view->thread.error_text) && now->num_ooms == before->num_ooms;
    /* No memory for no bytes may be an answer or a refusal: only the allocator knows. */
    bool is_ambiguous =
        view->request->op == GMD_OP_ALLOC && view->request->bytes == 0 && !view->block;
    if (is_known(now->num_ooms, before->num_ooms) && !is_counted && !is_another && !is_ambiguous) {
        gmd_violation_add(judge, GMD_KIND(accounting, oom_count),
                          GMD_PARTIES({"request", view->out_of_memory ? "refused" : "not_refused"}),
                          "num_ooms went from %" PRIu64 " to %" PRIu64
                          " in a request that %s: each refusal counts once, and nothing else",
                          before->num_ooms, now->num_ooms,
                          view->out_of_memory ? "was refused" : "was not refused");
    }
    demand_at_most(judge,
                   (quantity){"retries_before", "num_alloc_retries before the request",
                              before->num_alloc_retries, NULL},
                   STATISTIC(now, num_alloc_retries));
}

/* PyTorch counts what a freed block asked for until no work is pending on it: as long as active is
 * more than allocated, requested may be more than what live blocks asked for. A block that came
 * back with its pool counts with all of its size there. */
static void check_requested(const gmd_view *view, bool was_restored, gmd_judge *judge)
{
    const gmd_stats *s = view->stats.now;
    const quantity truth = {"live_bytes", "what the live blocks asked for", view->live.bytes,
                            gmd_party_bytes(view->live.bytes)};
    bool is_waiting =
        is_known(s->active_bytes, s->allocated_bytes) && s->active_bytes > s->allocated_bytes;
    if (is_waiting || was_restored) {
        demand_at_most(judge, truth, REQUESTED(view));
    } else {
        demand_equal(judge, REQUESTED(view), truth);
        demand_at_most(judge, REQUESTED(view), STATISTIC(s, allocated_bytes));
    }
}

static void check_live_set(const gmd_view *view, bool was_restored, gmd_judge *judge)
{
    const gmd_stats *s = view->stats.now;
    uint64_t counted = view->live.count - view->live.empty_count;
    bool leaves_out_empty =
        s->allocation_count >= counted && s->allocation_count <= view->live.count;
    if (!leaves_out_empty) {
        demand_equal(judge, STATISTIC(s, allocation_count),
                     (quantity){"live_count", "the number of live blocks", view->live.count, NULL});
    }
    demand_at_most(judge,
                   (quantity){"live_bytes", "the bytes asked for by live blocks", view->live.bytes,
                              gmd_party_bytes(view->live.bytes)},
                   STATISTIC(s, allocated_bytes));
    check_requested(view, was_restored, judge);
}

/* A peak is the highest value so far: never below what was seen from outside, and never below its
 * current value. */
static void check_peak(gmd_judge *judge, const char *name, uint64_t current, uint64_t peak,
                       uint64_t *seen)
{
    if (!is_known(current, peak)) {
        return;
    }
    *seen = gmd_max(current, *seen);
    if (peak < *seen) {
        gmd_violation_add(judge, GMD_KIND(accounting, low_peak), GMD_PARTIES({"figure", name}),
                          "%s_peak = %" PRIu64 " is less than %s was (%" PRIu64 ")", name, peak,
                          name, *seen);
    }
}

static void check_peaks(peaks *seen, const gmd_stats *s, gmd_judge *judge)
{
    check_peak(judge, "allocated_bytes", s->allocated_bytes, s->allocated_bytes_peak,
               &seen->allocated);
    check_peak(judge, "reserved_bytes", s->reserved_bytes, s->reserved_bytes_peak, &seen->reserved);
    check_peak(judge, "active_bytes", s->active_bytes, s->active_bytes_peak, &seen->active);
}

/* Reserved memory is what the device gave: at least the sizes that were asked of it, at most the
 * whole pages that these took. A stream-ordered pool may hold more than it handed out: that is the
 * pool's, and an allocator may count only what it uses of it. */
static void check_device(const gmd_view *view, gmd_judge *judge)
{
    uint64_t asked = view->figures.now->allocated_bytes + view->figures.now->mapped_bytes -
                     view->figures.untouched->allocated_bytes -
                     view->figures.untouched->mapped_bytes;
    uint64_t pages = view->figures.now->physical_bytes - view->figures.untouched->physical_bytes;
    uint64_t reserved = view->stats.now->reserved_bytes;
    asked -= gmd_min(view->figures.now->pool_bytes, asked);
    if (reserved != GMD_STAT_UNKNOWN && (reserved < asked || reserved > pages)) {
        gmd_violation_add(judge, GMD_KIND(accounting, device), GMD_NO_PARTIES,
                          "reserved_bytes = %" PRIu64
                          ", but the device handed out %s in %s of pages (what an allocator keeps "
                          "for itself counts "
                          "as reserved)",
                          reserved, BYTES(asked), BYTES(pages));
    }
}

/* What one request may do to the figures. */
static void check_change(const gmd_view *view, gmd_judge *judge)
{
    uint64_t now = view->stats.now->allocated_bytes, before = view->stats.before->allocated_bytes;
    if (!is_known(now, before)) {
        return;
    }
    if (view->request->op == GMD_OP_FREE && view->block && now > before) {
        gmd_violation_add(judge, GMD_KIND(accounting, raised_by_free), GMD_NO_PARTIES,
                          "the free of %s raised allocated_bytes by %" PRIu64 " to %" PRIu64,
                          BLOCK(view, view->block), now - before, now);
    } else if (view->request->op == GMD_OP_FREE && view->block &&
               before - now < view->block->bytes) {
        gmd_violation_add(judge, GMD_KIND(accounting, freed_short), GMD_NO_PARTIES,
                          "the free of %s lowered allocated_bytes by %" PRIu64 " to %" PRIu64,
                          BLOCK(view, view->block), before - now, now);
    } else if (!view->block && view->request->op != GMD_OP_RESTORE_POOL && now != before) {
        gmd_violation_add(judge, GMD_KIND(accounting, changed), GMD_NO_PARTIES,
                          "allocated_bytes went from %" PRIu64 " to %" PRIu64
                          " in a request that neither allocated nor freed",
                          before, now);
    } else if (view->request->op == GMD_OP_ALLOC && now < before) {
        gmd_violation_add(judge, GMD_KIND(accounting, lowered_by_alloc), GMD_NO_PARTIES,
                          "an allocation lowered allocated_bytes by %" PRIu64, before - now);
    }
}

/* Where the allocator promises it: what waits for nothing any more is free. */
static void check_waiting(figures_seen *b, const gmd_view *view, gmd_judge *judge)
{
    uint64_t excess;
    if (waiting_after(&b->waiting, view, &excess)) {
        gmd_violation_add(judge, GMD_KIND(accounting, kept_active), GMD_NO_PARTIES,
                          "active_bytes = %" PRIu64 " is %" PRIu64
                          " more than allocated_bytes and all freed blocks whose streams may still "
                          "be at work: the host has waited for the rest of them, and the allocator "
                          "promises (prompt) that the next request has their memory",
                          view->stats.now->active_bytes, excess);
    }
}

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    figures_seen *b = state;
    if (view->allocator.promises & GMD_PROMISE_PROMPT) {
        check_waiting(b, view, judge);
    }
    check_order(view, judge);
    b->was_restored[view->device] |= view->request->op == GMD_OP_RESTORE_POOL;
    check_live_set(view, b->was_restored[view->device], judge);
    check_peaks(&b->seen[view->device], view->stats.now, judge);
    if (!view->is_overlapped) {
        check_change(view, judge);
        check_counters(view, judge);
    }
    if (view->figures.now) {
        check_device(view, judge);
        demand_at_most(
            judge, STATISTIC(view->stats.now, reserved_bytes_peak),
            (quantity){"device", "the device's memory", view->figures.now->capacity_bytes, NULL});
    }
}

static void after_peak_reset(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)judge;
    figures_seen *b = state;
    b->seen[view->device] = (peaks){0};
}

static void at_end(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    const gmd_stats *s = view->stats.now;
    demand_equal(judge, STATISTIC(s, allocated_bytes), zero);
    demand_equal(judge, STATISTIC(s, active_bytes), zero);
    demand_equal(judge, STATISTIC(s, requested_bytes), zero);
    demand_equal(judge, STATISTIC(s, allocation_count), zero);
    if (view->figures.now) {
        check_device(view, judge);
    }
}

const gmd_oracle oracle_accounting = {
    .entry = ORACLE_ENTRY(accounting),
    .needs_quiet = true,
    .blind_spot = blind_spot,
    .create = create,
    .destroy = free,
    .after_request = after_request,
    .after_peak_reset = after_peak_reset,
    .at_end = at_end,
};
