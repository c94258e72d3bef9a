/* peak_bound - reserved memory never passes the limit that was set (the memory fraction), nor the
 * device. An allocator may hold more than a limit that is set later: it must not go further. What
 * it asked of the device is judged as well as what it says; whole pages are not, because a limit
 * counts bytes as they are asked for. Nor does a scenario's memory pass the bound that the scenario
 * states, except where it leaks on purpose, and where the bound is told only: it is of PyTorch's
 * allocator, and others round and keep memory by rules of their own.
 */
#include "list.h"
#include "wording.h"

#include "gmd_min.h"

#include <inttypes.h>

static const char *blind_spot(const gmd_view *view)
{
    return view->stats.now || view->figures.now
               ? NULL
               : "neither statistics nor the device's allocations can be seen";
}

static bool rose_above(uint64_t now, uint64_t before, uint64_t bound)
{
    return now != GMD_STAT_UNKNOWN && before != GMD_STAT_UNKNOWN && now > bound && now > before;
}

static const char *name_of(const gmd_view *view, uint64_t bound)
{
    return bound == view->limits.bytes ? "the memory limit" : "the device's memory";
}

static const char *token_of(const gmd_view *view, uint64_t bound)
{
    return bound == view->limits.bytes ? "limit" : "device";
}

static void check_stats(const gmd_view *view, uint64_t bound, gmd_judge *judge)
{
    const gmd_stats *now = view->stats.now, *before = view->stats.before;
    if (rose_above(now->reserved_bytes, before->reserved_bytes, bound)) {
        gmd_violation_add(
            judge, GMD_KIND(peak_bound, reserved), GMD_PARTIES({"bound", token_of(view, bound)}),
            "reserved_bytes rose from %" PRIu64 " to %" PRIu64
            ", above %s of %s: it should have given back its cache, or refused",
            before->reserved_bytes, now->reserved_bytes, name_of(view, bound), BYTES(bound));
    } else if (rose_above(now->reserved_bytes_peak, before->reserved_bytes_peak, bound)) {
        gmd_violation_add(judge, GMD_KIND(peak_bound, reserved_peak),
                          GMD_PARTIES({"bound", token_of(view, bound)}),
                          "reserved_bytes_peak rose from %" PRIu64 " to %" PRIu64
                          ", above %s of %s",
                          before->reserved_bytes_peak, now->reserved_bytes_peak,
                          name_of(view, bound), BYTES(bound));
    }
}

/* What the device had handed out before the request, and at most during it. Both are worked out
 * from what it is now and from the calls in between, so that what other requests did does not count
 * for this one. */
static void trace_back(const gmd_view *view, uint64_t now, uint64_t *before, uint64_t *most)
{
    uint64_t height = now;
    *most = now;
    for (size_t i = view->calls.count; i-- > 0;) {
        const gmd_device_call *c = &view->calls.list[i];
        if (c->device != view->device || c->is_pooled) {
            continue;
        }
        if (!c->is_free && c->size > height) {
            break; /* not all calls are noted */
        }
        height = c->is_free ? height + c->size : height - c->size;
        *most = gmd_max(height, *most);
    }
    *before = height;
}

static void check_device(const gmd_view *view, uint64_t bound, gmd_judge *judge)
{
    uint64_t now = view->figures.now->allocated_bytes + view->figures.now->mapped_bytes -
                   view->figures.untouched->allocated_bytes - view->figures.untouched->mapped_bytes;
    uint64_t before, most;
    trace_back(view, now, &before, &most);
    if (rose_above(most, before, bound)) {
        gmd_violation_add(judge, GMD_KIND(peak_bound, handed_out),
                          GMD_PARTIES({"bound", token_of(view, bound)}),
                          "what the device handed out rose from %s to %s, above %s of %s",
                          BYTES(before), BYTES(most), name_of(view, bound), BYTES(bound));
    }
}

/* Once: the run ends with it. */
static void check_stated(const gmd_view *view, gmd_judge *judge)
{
    for (size_t i = 0; i < view->bounds.count; i++) {
        const gmd_stated_bound *b = &view->bounds.list[i];
        if (gmd_stated_bound_is_broken(b)) {
            gmd_violation_add(judge, GMD_KIND(peak_bound, stated),
                              GMD_PARTIES({"figure", b->is_reserved ? "reserved" : "allocated"}),
                              "%s bytes rose to %s, above the bound of %s that the scenario states",
                              b->is_reserved ? "reserved" : "allocated", BYTES(b->peak),
                              BYTES(b->bytes));
            return;
        }
    }
}

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    uint64_t bound = view->limits.bytes;
    if (view->limits.device_bytes && view->limits.device_bytes < bound) {
        bound = view->limits.device_bytes;
    }
    if (view->stats.now) {
        check_stats(view, bound, judge);
    }
    if (view->figures.now) {
        check_device(view, bound, judge);
    }
    check_stated(view, judge);
}

const gmd_oracle oracle_peak_bound = {
    .entry = ORACLE_ENTRY(peak_bound),
    .needs_quiet = true,
    .blind_spot = blind_spot,
    .after_request = after_request,
};
