#include "device_heaps.h"

#include "history.h"

#include "gmd_assert.h"
#include "gmd_grow.h"

#include <string.h>

/* Heaps of the default pool live as long as the device does: no slot becomes empty again. */
static void remember(device_allocator *d, heap *h)
{
    GMD_ASSERT_INTERNAL(h->pool == &d->default_pool, "heaps of the default pool are remembered");
    uint32_t slot = device_heap_slot(h->stream, 0);
    for (uint32_t way = 0; way < HEAP_CACHE_WAYS; way++) {
        uint32_t next = device_heap_slot(h->stream, way);
        if (!atomic_load_explicit(&d->heap_cache[next], memory_order_relaxed)) {
            slot = next;
            break;
        }
    }
    atomic_store_explicit(&d->heap_cache[slot], h, memory_order_release);
}

/* How many heaps of the pool are of streams whose handles come before this one. */
static size_t heaps_before(const pool *of, cudaStream_t stream)
{
    size_t low = 0, high = of->heap_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((uintptr_t)of->heaps[middle]->stream < (uintptr_t)stream) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

heap *device_find_heap(const pool *of, cudaStream_t stream)
{
    size_t at = heaps_before(of, stream);
    return at < of->heap_count && of->heaps[at]->stream == stream ? of->heaps[at] : NULL;
}

static void insert_into_pool(pool *of, heap *h)
{
    size_t at = heaps_before(of, h->stream);
    memmove(&of->heaps[at + 1], &of->heaps[at], (of->heap_count - at) * sizeof(heap *));
    of->heaps[at] = h;
    of->heap_count++;
}

static heap *add_heap(device_allocator *d, pool *of, cudaStream_t stream)
{
    if (!GMD_GROW(&of->heaps, &of->heap_capacity, of->heap_count + 1)) {
        return NULL;
    }
    heap *h = heap_create(d, of, stream);
    if (!h || !history_open(d, h)) {
        heap_destroy(h);
        return NULL;
    }
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        h->sets[kind].is_whole = of->is_whole;
    }
    atomic_store_explicit(&h->entry, HEAP_CLOSED, memory_order_relaxed);
    statistics_add_heap(&d->stats, &h->stats);
    insert_into_pool(of, h);
    h->next_of_device = d->heaps;
    if (h->next_of_device) {
        h->next_of_device->previous_of_device = h;
    }
    d->heaps = h;
    return h;
}

heap *device_heap(device_allocator *d, pool *of, cudaStream_t stream)
{
    heap *cached = of == &d->default_pool ? device_cached_heap(d, stream) : NULL;
    if (cached) {
        return cached;
    }
    heap *h = device_find_heap(of, stream);
    h = h ? h : add_heap(d, of, stream);
    if (h && of == &d->default_pool) {
        remember(d, h);
    }
    return h;
}
