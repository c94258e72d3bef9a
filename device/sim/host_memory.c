#include "host_memory.h"

#include "state.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

static struct {
    pinned *list; /* in ascending address order, disjoint */
    size_t count, capacity;
} host;

/* How many begin at or below the address. */
static size_t rank_of(const void *pointer)
{
    size_t from = 0, to = host.count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if ((uintptr_t)host.list[middle].memory <= (uintptr_t)pointer) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

pinned *host_find(const void *pointer, uint64_t size)
{
    size_t rank = rank_of(pointer);
    pinned *p = rank ? &host.list[rank - 1] : NULL;
    uint64_t offset = p ? (uint64_t)((uintptr_t)pointer - (uintptr_t)p->memory) : 0;
    return p && offset < p->size && size <= p->size - offset ? p : NULL;
}

bool host_overlaps(const void *pointer, uint64_t size)
{
    size_t rank = rank_of(pointer);
    uint64_t end = (uintptr_t)pointer + size;
    return host_find(pointer, 1) || (rank < host.count && (uintptr_t)host.list[rank].memory < end);
}

bool host_add(const pinned *p)
{
    if (!GMD_GROW(&host.list, &host.capacity, host.count + 1)) {
        return false;
    }
    size_t at = rank_of(p->memory);
    memmove(&host.list[at + 1], &host.list[at], (host.count - at) * sizeof *host.list);
    host.list[at] = *p;
    host.list[at].buffer_id = ++sim.buffers;
    host.count++;
    return true;
}

void host_remove(pinned *p)
{
    size_t at = (size_t)(p - host.list);
    host.count--;
    memmove(p, p + 1, (host.count - at) * sizeof *p);
}

void host_reset(void)
{
    while (host.count) {
        pinned *p = &host.list[--host.count];
        if (!p->is_registered) {
            free(p->memory);
        }
    }
}
