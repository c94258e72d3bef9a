/* requests.h - what callers ask of one device: blocks, frees, the cache given back. Each takes and
 * leaves the device, or a heap of it, by itself. */
#ifndef GMD_REQUESTS_H
#define GMD_REQUESTS_H

#include "device_allocator.h"

void *requests_malloc(device_allocator *d, size_t size, cudaStream_t stream);

/* `stream` is where the block was allocated, as far as the caller knows: a wrong one costs time
 * only. False: ptr is no live block of this device. */
bool requests_free(device_allocator *d, void *ptr, cudaStream_t stream);

/* The size of a live block; 0: ptr is none of this device. */
uint64_t requests_block_size(device_allocator *d, const void *ptr);

bool requests_record_stream(device_allocator *d, void *ptr, cudaStream_t stream);
/* The stream is about to be destroyed: its work is waited for, where blocks depend on it. */
void requests_forget_stream(device_allocator *d, cudaStream_t stream);
void requests_empty_cache(device_allocator *d);

/* False: there is no private pool of that name. */
bool requests_empty_pool(device_allocator *d, const uint64_t id[2]);

#endif
