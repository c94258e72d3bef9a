#include "last_slot.h"

#include "allocator_test.h"
#include "block_map.h"
#include "settings.h"

enum { FIRST_SLOT_BITS = 10 }; /* of a map's first size, for a quarter as many blocks */

static uint64_t take_next(gmd_allocator *a, uint64_t size, cudaStream_t stream)
{
    return (uint64_t)(uintptr_t)gmd_allocator_malloc(a, size, 0, stream);
}

uint64_t take_in_last_slot(gmd_allocator *a, cudaStream_t stream)
{
    uint64_t end = take_next(a, BLOCK_BYTES, stream) + BLOCK_BYTES, last = end;
    while (block_map_hash(last) >> (64 - FIRST_SLOT_BITS) != (1 << FIRST_SLOT_BITS) - 1) {
        last += BLOCK_BYTES;
    }
    while (end < last) { /* blocks of one segment follow each other */
        uint64_t size = last - end < SMALL_REQUEST_BYTES ? last - end : SMALL_REQUEST_BYTES;
        assert_int_equal(take_next(a, size, stream), end);
        end += size;
    }
    assert_int_equal(take_next(a, BLOCK_BYTES, stream), last);
    return last;
}
