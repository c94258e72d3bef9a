#include "heap.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { SPARES_MAX = 32 };

static struct {
    pthread_mutex_t lock;
    _Atomic bool are_kept;
    heap *first; /* by next_of_device */
    unsigned count;
} spares = {.lock = PTHREAD_MUTEX_INITIALIZER};

void heap_keep_spares(void)
{
    spares.are_kept = true;
}

static heap *take_spare(void)
{
    pthread_mutex_lock(&spares.lock);
    heap *h = spares.first;
    if (h) {
        spares.first = h->next_of_device;
        spares.count--;
    }
    pthread_mutex_unlock(&spares.lock);
    return h;
}

/* False: there are enough. */
static bool keep_spare(heap *h)
{
    pthread_mutex_lock(&spares.lock);
    bool is_kept = spares.count < SPARES_MAX;
    if (is_kept) {
        h->next_of_device = spares.first;
        spares.first = h;
        spares.count++;
    }
    pthread_mutex_unlock(&spares.lock);
    return is_kept;
}

static bool is_empty(const heap *h)
{
    bool is_empty = h->allocated.count == 0;
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        is_empty = is_empty && !h->sets[kind].block_count && !h->sets[kind].summary &&
                   !h->sets[kind].unmapped;
    }
    return is_empty;
}

/* The bins, nearly all of a heap, are empty as it is; maps and blocks are kept. */
static heap *renew(heap *h)
{
    const block_pool blocks = h->blocks;
    const block_map allocated = h->allocated;
    memset(h, 0, offsetof(heap, sets));
    h->blocks = blocks;
    h->allocated = allocated;
    return h;
}

static heap *make(void)
{
    heap *h = aligned_alloc(_Alignof(heap), sizeof *h);
    if (h) {
        memset(h, 0, sizeof *h);
    }
    return h;
}

heap *heap_create(device_allocator *device, pool *of, cudaStream_t stream)
{
    heap *spare = spares.are_kept ? take_spare() : NULL;
    heap *h = spare ? renew(spare) : make();
    if (!h) {
        return NULL;
    }
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
    if (spares.are_kept && is_empty(h)) {
        block_map_shrink(&h->allocated);
        block_pool_reset(&h->blocks);
        if (keep_spare(h)) {
            return;
        }
    }
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
