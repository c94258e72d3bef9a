/* overlap - no two live blocks share a byte. A block of 0 B owns none: an allocator may give all of
 * them one address. */
#include "gmd_intervals.h"
#include "gmd_min.h"
#include "list.h"
#include "wording.h"

#include <inttypes.h>
#include <stdlib.h>

static void *create(void)
{
    return calloc(1, sizeof(gmd_intervals));
}

static void destroy(void *state)
{
    gmd_intervals_free(state);
    free(state);
}

static void after_alloc(void *state, const gmd_view *view, gmd_judge *judge)
{
    gmd_intervals *live = state;
    const gmd_live_block *b = view->block;
    if (!b->bytes) {
        return;
    }
    uint64_t end = b->address + b->bytes;
    const gmd_interval *other = gmd_intervals_after(live, b->address);
    if (other && other->address < end) {
        uint64_t from = gmd_max(other->address, b->address);
        gmd_violation_add(judge, GMD_KIND(overlap, shared), GMD_NO_PARTIES,
                          "%s on stream %" PRIu32 " overlaps the live %s (request %" PRIu64
                          "): both own %s from 0x%" PRIx64 " on",
                          BLOCK(view, b), b->stream,
                          block_text(view, other->value, other->end - other->address,
                                     other->address, (char[BLOCK_TEXT]){0}),
                          other->value, BYTES(gmd_min(end, other->end) - from), from);
        return; /* the set stays free of overlaps, which its search relies on */
    }
    if (!gmd_intervals_insert(live, b->address, end, b->born)) {
        gmd_violation_add(judge, GMD_KIND(overlap, no_host_memory), GMD_NO_PARTIES,
                          "gmd ran out of host memory after %" PRIu64 " live blocks",
                          view->live.count);
    }
}

static void before_free(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)judge;
    if (view->block->bytes) {
        gmd_intervals_remove(state, view->block->address);
    }
}

const gmd_oracle oracle_overlap = {
    .entry = ORACLE_ENTRY(overlap),
    .create = create,
    .destroy = destroy,
    .after_alloc = after_alloc,
    .before_free = before_free,
};
