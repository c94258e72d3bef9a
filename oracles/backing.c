/* backing - every live block starts in memory that its own device has handed out, and still does
 * when it is freed. (How far that memory reaches is the business of `size`.) */
#include "list.h"

#include <inttypes.h>

static const char *blind_spot(const gmd_view *view)
{
    return view->find_range ? NULL : "a real device does not tell which memory it handed out";
}

static void check(const gmd_view *view, gmd_judge *judge, const char *when)
{
    const gmd_live_block *b = view->block;
    gmd_device_range range;
    if (!view->find_range(view->device_context, b->address, &range)) {
        gmd_violation_add(judge,
                          "block of %" PRIu64 " B at 0x%" PRIx64 " (request %" PRIu64
                          ") %s: the device has handed out no memory there",
                          b->bytes, b->address, b->born, when);
    } else if (range.device != b->device) {
        gmd_violation_add(judge,
                          "block of %" PRIu64 " B at 0x%" PRIx64 " (request %" PRIu64
                          ") %s: asked for on device %d, lies in memory of device %d",
                          b->bytes, b->address, b->born, when, b->device, range.device);
    }
}

static void after_alloc(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    check(view, judge, "as it is handed out");
}

static void before_free(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    check(view, judge, "while it is live");
}

const gmd_oracle gmd_oracle_backing = {
    .name = "backing",
    .holds_when = "every live block lies in memory that the right device has handed out",
    .blind_spot = blind_spot,
    .after_alloc = after_alloc,
    .before_free = before_free,
};
