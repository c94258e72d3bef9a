/* size - a block can hold what was asked. Its true size is what the allocator itself booked for it
 * (the change in allocated bytes); and it must end within the device allocation that it starts in.
 */
#include "list.h"
#include "wording.h"

#include <inttypes.h>

static const char *blind_spot(const gmd_view *view)
{
    return view->ask.find_range || view->stats.now
               ? NULL
               : "neither statistics nor the device's allocations can be seen";
}

static void check_booked(const gmd_view *view, gmd_judge *judge)
{
    uint64_t now = view->stats.now->allocated_bytes, before = view->stats.before->allocated_bytes;
    if (now == GMD_STAT_UNKNOWN || before == GMD_STAT_UNKNOWN || now < before) {
        return; /* a total that shrinks is for `accounting` to report */
    }
    if (now - before < view->block->bytes) {
        gmd_violation_add(judge, GMD_KIND(size, booked_short),
                          GMD_PARTIES({"bytes", gmd_party_bytes(view->block->bytes)}),
                          "%s: %s booked as allocated (allocated_bytes went from %" PRIu64
                          " to %" PRIu64 "): its end may be handed out to another owner",
                          BLOCK(view, view->block), BYTES(now - before), before, now);
    }
}

static void check_extent(const gmd_view *view, gmd_judge *judge)
{
    const gmd_live_block *b = view->block;
    gmd_device_range range;
    if (!view->ask.find_range(view->ask.context, b->address, &range)) {
        return; /* for `backing` to report */
    }
    uint64_t room = range.size - (b->address - range.address);
    if (room < b->bytes) {
        gmd_violation_add(
            judge, GMD_KIND(size, ends_early), GMD_PARTIES({"bytes", gmd_party_bytes(b->bytes)}),
            "%s: the device allocation of %s at 0x%" PRIx64 " ends after %s of it: work "
            "on its end reads and writes memory of nobody, or of another",
            BLOCK(view, b), BYTES(range.size), range.address, BYTES(room));
    }
}

static void after_alloc(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    bool is_alone = !view->request || view->request->op == GMD_OP_ALLOC; /* no restored pool */
    if (view->stats.now && is_alone && !view->is_overlapped && !view->is_busy) {
        check_booked(view, judge);
    }
    if (view->ask.find_range) {
        check_extent(view, judge);
    }
}

const gmd_oracle oracle_size = {
    .entry = ORACLE_ENTRY(size),
    .blind_spot = blind_spot,
    .after_alloc = after_alloc,
};
