/* data - what was written to a block is what is read from it until it is freed: nothing but the
 * block's own work writes there. This finds writes of the allocator itself into a live block, two
 * blocks that share physical memory at different addresses, and work of an earlier owner that ran
 * too late. */
#include "list.h"
#include "wording.h"

#include <inttypes.h>

static const char *blind_spot(const gmd_view *view)
{
    bool has_reason = view->canaries.reason && *view->canaries.reason;
    return view->ask.read_contents || view->canaries.are_there ? NULL
           : has_reason                                        ? view->canaries.reason
                        : "nothing writes blocks and reads them on this device";
}

static void before_free(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    const gmd_live_block *b = view->block;
    gmd_contents c;
    if (!view->ask.read_contents || !view->ask.read_contents(view->ask.context, b, &c) ||
        !c.other_bytes || !c.is_written) {
        return;
    }
    if (c.other) {
        gmd_violation_add(judge, GMD_KIND(data, aliased), GMD_NO_PARTIES,
                          "%s of the %s (request %" PRIu64 ", stream %" PRIu32
                          ") hold, from 0x%" PRIx64
                          " on, what work of the live %s (request %" PRIu64 ", stream %" PRIu32
                          ") wrote: both lie on the same physical memory",
                          BYTES(c.other_bytes), BLOCK(view, b), b->born, b->stream, c.other_address,
                          BLOCK(view, c.other), c.other->born, c.other->stream);
    } else {
        gmd_violation_add(
            judge, GMD_KIND(data, overwritten), GMD_NO_PARTIES,
            "%s of the %s (request %" PRIu64 ", stream %" PRIu32 ") do not hold, from 0x%" PRIx64
            " on, what its own work wrote: the allocator itself, or work of an "
            "earlier owner, wrote there while the block was live",
            BYTES(c.other_bytes), BLOCK(view, b), b->born, b->stream, c.other_address);
    }
}

/* On a real device. What another block's work has written is stream_order's to judge. */
static void on_canary_finding(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    const gmd_canary_finding *finding = view->canaries.finding;
    if (!finding->has_other) {
        const gmd_live_block *b = &finding->block;
        gmd_violation_add(judge, GMD_KIND(data, foreign_value), GMD_NO_PARTIES,
                          "the work that request %" PRIu64 " queued on stream %" PRIu32
                          " found 0x%" PRIx64 ", %s into its %s (request %" PRIu64
                          ", stream %" PRIu32 "), which no work of a block had written",
                          finding->use.request, finding->use.stream, finding->found,
                          BYTES(finding->offset), BLOCK(view, b), b->born, b->stream);
    }
}

const gmd_oracle oracle_data = {
    .entry = ORACLE_ENTRY(data),
    .blind_spot = blind_spot,
    .before_free = before_free,
    .on_canary_finding = on_canary_finding,
};
