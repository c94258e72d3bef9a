/* device_heaps.h - the heaps of a device, each made when its stream first needs it. */
#ifndef GMD_DEVICE_HEAPS_H
#define GMD_DEVICE_HEAPS_H

#include "device_allocator.h"

/* The heap of a stream in a pool, made where there is none. NULL: no host memory. The caller
 * has exclusive access to the device. */
heap *device_heap(device_allocator *d, pool *of, cudaStream_t stream);

/* The heap of a stream in a pool; NULL: there is none. Likewise. */
heap *device_find_heap(const pool *of, cudaStream_t stream);

#endif
