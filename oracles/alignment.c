/* alignment - every pointer is aligned as promised: 512 B for allocators of PyTorch's algorithm,
 * the 256 B of cudaMalloc where nothing is promised (CUDA C++ Programming Guide, device memory
 * accesses). A block of 0 B is for no work: where it is does not matter. */
#include "list.h"
#include "wording.h"

#include <inttypes.h>

static void after_alloc(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    const gmd_live_block *b = view->block;
    uint64_t off = b->address % view->allocator.promised_alignment;
    if (b->bytes && off) {
        gmd_violation_add(judge, GMD_KIND(alignment, misaligned), GMD_NO_PARTIES,
                          "%s on stream %" PRIu32 " is %" PRIu64
                          " B past a multiple of the promised %" PRIu64
                          " B: work that relies on the promise fails or is slow",
                          BLOCK(view, b), b->stream, off, view->allocator.promised_alignment);
    }
}

const gmd_oracle oracle_alignment = {
    .entry = ORACLE_ENTRY(alignment),
    .after_alloc = after_alloc,
};
