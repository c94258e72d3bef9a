/* heap.h - the blocks of one stream in one pool, and what is counted of them.
 *
 * In this algorithm a block never leaves its stream, so streams share nothing that a cached request
 * needs: each heap is worked on by whoever has entered it, threads on different streams at the same
 * time. Entering never waits: who finds a heap taken goes through the device's lock instead
 * (device_allocator.h), which keeps all heaps closed while it is held. So a heap is never held
 * across a call of CUDA, nor while waiting for anything. */
#ifndef GMD_HEAP_H
#define GMD_HEAP_H

#include "block_map.h"
#include "free_set.h"
#include "gmd_cuda.h"
#include "statistics.h"

#include <stdatomic.h>
#include <stddef.h>

typedef struct device_allocator device_allocator;
typedef struct pool pool;
typedef struct history_ring history_ring;

typedef enum heap_entry { HEAP_OPEN, HEAP_ENTERED, HEAP_CLOSED } heap_entry;

struct heap {
    _Atomic uint32_t entry; /* heap_entry */
    cudaStream_t stream;
    bool is_idle;       /* its stream was destroyed; until a request names its handle again */
    uint32_t unchecked; /* see validity.h */
    device_allocator *device;
    pool *pool;
    heap *next_of_device, *previous_of_device; /* the latest first */
    block_pool blocks;
    block_map allocated;   /* the allocated blocks, by address */
    history_ring *history; /* NULL: not kept */
    heap_statistics stats;
    free_set sets[POOL_KINDS];
};

/* NULL: no host memory. */
heap *heap_create(device_allocator *device, pool *of, cudaStream_t stream);
void heap_destroy(heap *h); /* NULL is fine */

/* From now on up to 32 heaps that are destroyed are kept for the next ones of the process: who
 * makes the allocator anew thousands of times a second has them cleared already. Any thread. */
void heap_keep_spares(void);

static inline bool heap_try_enter(heap *h)
{
    uint32_t open = HEAP_OPEN;
    return atomic_compare_exchange_strong_explicit(&h->entry, &open, HEAP_ENTERED,
                                                   memory_order_acquire, memory_order_relaxed);
}

static inline void heap_leave(heap *h)
{
    GMD_ASSERT_INTERNAL(atomic_load_explicit(&h->entry, memory_order_relaxed) != HEAP_OPEN,
                        "a heap that is left was entered");
    atomic_store_explicit(&h->entry, HEAP_OPEN, memory_order_release);
}

/* Waits until nobody is in it; nobody comes in before heap_leave. */
void heap_close(heap *h);

/* The heap whose figures these are. */
static inline heap *heap_of(heap_statistics *figures)
{
    return (heap *)(void *)((char *)figures - offsetof(heap, stats));
}

static inline pool_kind set_kind(const free_set *set)
{
    return set->is_small ? POOL_SMALL : POOL_LARGE;
}

#endif
