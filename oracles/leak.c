/* leak - with everything freed and the cache emptied, the device is as it was: allocations, mapped
 * memory, physical handles, address reservations, streams, events. An allocator that cannot be told
 * to empty its cache is judged only if it gives memory back by itself: what it still holds may be
 * its cache. */
#include "list.h"

#include <inttypes.h>

static const char *blind_spot(const gmd_view *view)
{
    if (!view->figures && !view->stats) {
        return "neither the device's allocations nor statistics can be seen";
    }
    return view->can_empty_cache
               ? NULL
               : "the allocator exports no gmd_empty_cache: what it holds may be its cache";
}

/* A real device is shared and does not tell what this process holds: the allocator's word is taken.
 */
static void check_own_word(const gmd_view *view, gmd_judge *judge)
{
    uint64_t reserved = view->stats->reserved_bytes;
    uint64_t at_start = view->reserved_at_start;
    if (reserved != GMD_STAT_UNKNOWN && reserved > (at_start == GMD_STAT_UNKNOWN ? 0 : at_start)) {
        gmd_violation_add(judge,
                          "device %d: reserved_bytes = %" PRIu64
                          " after everything was freed and the "
                          "cache emptied",
                          view->device, reserved);
    }
}

static void demand_no_more(gmd_judge *judge, const gmd_view *view, const char *what, uint64_t now,
                           uint64_t was)
{
    if (now > was) {
        gmd_violation_add(judge, "device %d: %" PRIu64 " %s are left", view->device, now - was,
                          what);
    }
}

static void check_device(const gmd_view *view, gmd_judge *judge)
{
    const gmd_device_figures *now = view->figures, *was = view->baseline;
    if (now->allocated_bytes > was->allocated_bytes ||
        now->allocation_count > was->allocation_count) {
        gmd_violation_add(judge,
                          "device %d: %" PRIu64 " B in %" PRIu64
                          " device allocations are left after "
                          "everything was freed and the cache emptied",
                          view->device, now->allocated_bytes - was->allocated_bytes,
                          now->allocation_count - was->allocation_count);
    }
    demand_no_more(judge, view, "events", now->event_count, was->event_count);
    demand_no_more(judge, view, "streams", now->stream_count, was->stream_count);
    demand_no_more(judge, view, "bytes of mapped memory", now->mapped_bytes, was->mapped_bytes);
    demand_no_more(judge, view, "physical memory handles", now->handle_count, was->handle_count);
    demand_no_more(judge, view, "address reservations", now->reservation_count,
                   was->reservation_count);
}

static void at_end(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    if (view->figures) {
        check_device(view, judge);
    } else {
        check_own_word(view, judge);
    }
}

const gmd_oracle gmd_oracle_leak = {
    .name = "leak",
    .holds_when = "with everything freed and the cache emptied, the device is as it was",
    .blind_spot = blind_spot,
    .at_end = at_end,
};
