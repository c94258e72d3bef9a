// torch_segment.h - the segment that a pointer lies in.
#ifndef GMD_TORCH_SEGMENT_H
#define GMD_TORCH_SEGMENT_H

#include "gmd_abi.h"

// One of its blocks; std::runtime_error where the allocator has no such segment.
gmd_block_info segment_of(const void *ptr);

#endif
