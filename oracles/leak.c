/* leak - with everything freed and the cache emptied, the device is as it was: allocations, mapped
 * memory, physical handles, address reservations, streams, events. An allocator that cannot be told
 * to empty its cache is judged only if it gives memory back by itself: what it still holds may be
 * its cache. */
#include "list.h"
#include "wording.h"

#include "gmd_min.h"

#include <inttypes.h>
#include <stdlib.h>

/* An allocator may keep the events that it made for blocks that wait for other streams, to use them
 * again; it needs one for each recorded stream of each block that waits at the same time. */
typedef struct waiting {
    uint64_t now, most; /* recorded streams of freed blocks that may still wait */
    bool is_idle;       /* no stream has work that they could wait for */
} waiting;

typedef struct waits {
    waiting devices[GMD_MAX_DEVICES];
} waits;

static void *create(void)
{
    return calloc(1, sizeof(waits));
}

static const char *blind_spot(const gmd_view *view)
{
    if (!view->figures.now && !view->stats.now) {
        return "neither the device's allocations nor statistics can be seen";
    }
    return view->allocator.can_empty_cache
               ? NULL
               : "the allocator exports no gmd_empty_cache: what it holds may be its cache";
}

/* A real device is shared and does not tell what this process holds: the allocator's word is taken.
 */
static void check_own_word(const gmd_view *view, gmd_judge *judge)
{
    uint64_t reserved = view->stats.now->reserved_bytes;
    uint64_t at_start = view->stats.reserved_at_start;
    if (reserved != GMD_STAT_UNKNOWN && reserved > (at_start == GMD_STAT_UNKNOWN ? 0 : at_start)) {
        gmd_violation_add(judge, GMD_KIND(leak, reserved), GMD_NO_PARTIES,
                          "device %d: reserved_bytes = %" PRIu64
                          " after everything was freed and the "
                          "cache emptied",
                          view->device, reserved);
    }
}

/* `one` is what there is one of: its plural has an s. `of`: what follows it. */
static void demand_no_more(gmd_judge *judge, const gmd_view *view, gmd_kind kind, const char *one,
                           const char *of, uint64_t now, uint64_t was)
{
    if (now > was) {
        bool is_one = now - was == 1;
        gmd_violation_add(
            judge, kind, GMD_NO_PARTIES,
            "device %d: %" PRIu64 " %s%s%s %s left: %" PRIu64 " before the first request, %" PRIu64
            " after everything was freed and the cache emptied",
            view->device, now - was, one, is_one ? "" : "s", of, is_one ? "is" : "are", was, now);
    }
}

static void check_events(const waiting *w, const gmd_view *view, gmd_judge *judge)
{
    uint64_t now = view->figures.now->event_count, was = view->figures.baseline->event_count;
    if (now > was && now - was > w->most) {
        gmd_violation_add(judge, GMD_KIND(leak, events), GMD_NO_PARTIES,
                          "device %d: %" PRIu64
                          " event%s left, and freed blocks waited for other streams %" PRIu64
                          " time%s at once at most",
                          view->device, now - was, now - was == 1 ? " is" : "s are", w->most,
                          w->most == 1 ? "" : "s");
    }
}

static void check_device(const waiting *w, const gmd_view *view, gmd_judge *judge)
{
    const gmd_device_figures *now = view->figures.now, *was = view->figures.baseline;
    if (now->allocated_bytes > was->allocated_bytes ||
        now->allocation_count > was->allocation_count) {
        uint64_t count = now->allocation_count - was->allocation_count;
        gmd_violation_add(judge, GMD_KIND(leak, allocations), GMD_NO_PARTIES,
                          "device %d: %s in %" PRIu64 " device allocation%s are left after "
                          "everything was freed and the cache emptied",
                          view->device, BYTES(now->allocated_bytes - was->allocated_bytes), count,
                          count == 1 ? "" : "s");
    }
    check_events(w, view, judge);
    demand_no_more(judge, view, GMD_KIND(leak, streams), "stream", "", now->stream_count,
                   was->stream_count);
    demand_no_more(judge, view, GMD_KIND(leak, mapped_memory), "byte", " of mapped memory",
                   now->mapped_bytes, was->mapped_bytes);
    demand_no_more(judge, view, GMD_KIND(leak, handles), "physical memory handle", "",
                   now->handle_count, was->handle_count);
    demand_no_more(judge, view, GMD_KIND(leak, reservations), "address reservation", "",
                   now->reservation_count, was->reservation_count);
}

/* With nothing to wait for and the cache emptied, every event was free to be used again. */
static void forget_waits(waits *w)
{
    for (int device = 0; device < GMD_MAX_DEVICES; device++) {
        if (w->devices[device].is_idle) {
            w->devices[device].now = 0;
        }
    }
}

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)judge;
    waiting *w = &((waits *)state)->devices[view->device];
    if (view->request->op == GMD_OP_FREE && view->uses.recorded_count) {
        w->now += view->uses.recorded_count;
        w->most = gmd_max(w->now, w->most);
        w->is_idle = false;
    } else if (view->request->op == GMD_OP_SYNC && view->request->stream == GMD_ALL_STREAMS) {
        w->is_idle = true;
    } else if (view->request->op == GMD_OP_EMPTY_CACHE) {
        forget_waits(state);
    }
}

static void at_end(void *state, const gmd_view *view, gmd_judge *judge)
{
    if (view->figures.now) {
        check_device(&((waits *)state)->devices[view->device], view, judge);
    } else {
        check_own_word(view, judge);
    }
}

const gmd_oracle oracle_leak = {
    .entry = ORACLE_ENTRY(leak),
    .blind_spot = blind_spot,
    .create = create,
    .destroy = free,
    .after_request = after_request,
    .at_end = at_end,
};
