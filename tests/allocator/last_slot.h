/* last_slot.h - a block in the last slot of the map of a stream's blocks: who goes over them all
 * must not leave it out. */
#ifndef GMD_TEST_LAST_SLOT_H
#define GMD_TEST_LAST_SLOT_H

#include "gmd_allocator.h"

/* On device 0, on a stream that has no blocks yet. Small blocks are taken before it. */
uint64_t take_in_last_slot(gmd_allocator *a, cudaStream_t stream);

#endif
