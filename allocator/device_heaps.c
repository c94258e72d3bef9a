#include "device_heaps.h"

#include "history.h"

#include "gmd_assert.h"

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

static heap *add_heap(device_allocator *d, pool *of, heap **link, cudaStream_t stream)
{
    heap *h = heap_create(d, of, stream);
    if (!h || !history_open(d, h)) {
        heap_destroy(h);
        return NULL;
    }
    atomic_store_explicit(&h->entry, HEAP_CLOSED, memory_order_relaxed);
    statistics_add_heap(&d->stats, &h->stats);
    h->next = *link;
    *link = h;
    h->next_of_device = d->heaps;
    d->heaps = h;
    return h;
}

heap *device_heap(device_allocator *d, pool *of, cudaStream_t stream)
{
    heap *cached = of == &d->default_pool ? device_cached_heap(d, stream) : NULL;
    if (cached) {
        return cached;
    }
    heap **link = &of->heaps;
    while (*link && (uintptr_t)(*link)->stream < (uintptr_t)stream) {
        link = &(*link)->next;
    }
    heap *h = *link && (*link)->stream == stream ? *link : add_heap(d, of, link, stream);
    if (h && of == &d->default_pool) {
        remember(d, h);
    }
    return h;
}
