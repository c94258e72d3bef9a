/* backing - all of a live block lies in memory that its own device has handed out or mapped, where
 * work can read and write it, and still does when it is freed. (A block that goes beyond the end of
 * the device allocation that it starts in is the business of `size`. A block of 0 B owns no byte
 * and may be anywhere.) */
#include "list.h"
#include "wording.h"

#include <inttypes.h>

static const char *blind_spot(const gmd_view *view)
{
    return view->ask.is_backed ? NULL : "a real device does not tell which memory it handed out";
}

typedef struct moment {
    const char *token, *words;
} moment;

/* One address of the block that work cannot use. */
static void report(const gmd_view *view, gmd_judge *judge, const moment *when, uint64_t bad)
{
    const gmd_live_block *b = view->block;
    gmd_device_range range;
    bool is_in_one = view->ask.find_range(view->ask.context, b->address, &range);
    if (is_in_one && range.device != b->device) {
        gmd_violation_add(
            judge, GMD_KIND(backing, wrong_device), GMD_PARTIES({"when", when->token}),
            "%s (request %" PRIu64 ") %s: asked for on device %d, lies in memory of device %d",
            BLOCK(view, b), b->born, when->words, b->device, range.device);
    } else if (!is_in_one || bad != range.address + range.size) {
        gmd_violation_add(judge, GMD_KIND(backing, no_memory),
                          GMD_PARTIES({"when", when->token}, {"bytes", gmd_party_bytes(b->bytes)}),
                          "%s (request %" PRIu64
                          ") %s: the device has handed out no memory there (at 0x%" PRIx64 ")",
                          BLOCK(view, b), b->born, when->words, bad);
    }
}

static void check(const gmd_view *view, gmd_judge *judge, const moment *when)
{
    const gmd_live_block *b = view->block;
    uint64_t bad = b->address;
    if (b->bytes &&
        !view->ask.is_backed(view->ask.context, b->address, b->bytes, b->device, &bad)) {
        report(view, judge, when, bad);
    }
}

static void after_alloc(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    check(view, judge, &(moment){"handed_out", "as it is handed out"});
}

static void before_free(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    check(view, judge, &(moment){"live", "while it is live"});
}

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    uint64_t bad = 0;
    for (size_t i = 0; i < view->pools.access_count; i++) {
        const gmd_graph_access *a = &view->pools.accesses[i];
        if (a->bytes &&
            !view->ask.is_backed(view->ask.context, a->address, a->bytes, view->device, &bad)) {
            gmd_violation_add(judge, GMD_KIND(backing, graph_without_memory), GMD_NO_PARTIES,
                              "the graph that is launched works on %s at 0x%" PRIx64
                              " (captured in request %" PRIu64
                              "), and the device has handed out no memory there (at 0x%" PRIx64 ")",
                              BYTES(a->bytes), a->address, a->request, bad);
            return;
        }
    }
}

const gmd_oracle oracle_backing = {
    .entry = ORACLE_ENTRY(backing),
    .blind_spot = blind_spot,
    .after_alloc = after_alloc,
    .before_free = before_free,
    .after_request = after_request,
};
