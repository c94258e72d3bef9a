#include "heap.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

heap *heap_create(device_allocator *device, pool *of, cudaStream_t stream)
{
    heap *h = aligned_alloc(_Alignof(heap), sizeof *h);
    if (!h) {
        return NULL;
    }
    memset(h, 0, sizeof *h);
    h->stream = stream;
    h->device = device;
    h->pool = of;
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        h->sets[kind].heap = h;
        h->sets[kind].is_small = kind == POOL_SMALL;
    }
    return h;
}

void heap_destroy(heap *h)
{
    if (!h) {
        return;
    }
    free(h->history);
    block_map_release(&h->allocated);
    block_pool_release(&h->blocks);
    free(h);
}

void heap_close(heap *h)
{
    uint32_t open = HEAP_OPEN;
    while (!atomic_compare_exchange_weak_explicit(&h->entry, &open, HEAP_CLOSED,
                                                  memory_order_acquire, memory_order_relaxed)) {
        if (open == HEAP_ENTERED) { /* for some ten ns, unless its thread lost the processor */
            sched_yield();
        }
        open = HEAP_OPEN;
    }
}
