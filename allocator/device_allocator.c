#include "device_allocator.h"

heap *device_cached_heap_elsewhere(device_allocator *d, cudaStream_t stream)
{
    for (uint32_t way = 1; way < HEAP_CACHE_WAYS; way++) {
        heap *h = atomic_load_explicit(&d->heap_cache[device_heap_slot(stream, way)],
                                       memory_order_acquire);
        if (!h || h->stream == stream) {
            return h;
        }
    }
    return NULL;
}
