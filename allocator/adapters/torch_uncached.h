// torch_uncached.h - while caching is switched off (torch.cuda.caching_allocator_enable(False),
// PYTORCH_NO_CUDA_MEMORY_CACHING), each request is one of cudaMalloc, and the allocator knows
// nothing of it. Thread-safe.
#ifndef GMD_TORCH_UNCACHED_H
#define GMD_TORCH_UNCACHED_H

#include <cstddef>

bool caching_is_off();

// nullptr: the device refuses. The block is of the current device.
void *allocate_uncached(size_t size);

// False: the block is none of these; nothing is done.
bool free_uncached(void *block);

#endif
