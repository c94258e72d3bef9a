#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "memory.h"

#include "marks.h"
#include "pages.h"
#include "placement.h"
#include "pool_blocks.h"
#include "state.h"
#include "virtual_memory.h"

#include "gmd_assert.h"

#include <stdlib.h>
#include <sys/mman.h>

/* --- the host memory behind an allocation ------------------------------------------------ */

enum { MAP_THRESHOLD = 64 << 10 };

static unsigned char *backing_new(uint64_t size)
{
    if (size < MAP_THRESHOLD) {
        return calloc(1, size);
    }
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static void backing_delete(unsigned char *data, uint64_t size)
{
    if (data && size >= MAP_THRESHOLD) {
        munmap(data, size);
    } else {
        free(data);
    }
}

/* --- device memory ----------------------------------------------------------------------- */

allocation *memory_find_run(uint64_t address, uint64_t size)
{
    allocation *a = map_find(address);
    if (a && a->pool_block) {
        return chunk_has(a->pool_block, address, size) ? a : NULL;
    }
    return map_find_range(address, size);
}

bool memory_is_usable(uint64_t address, uint64_t size, int device, uint64_t *bad)
{
    const allocation *a = map_find_range(address, size);
    if (a && a->reservation) {
        return virtual_is_usable(a, address, size, device, bad);
    }
    const allocation *first = a ? a : map_find_range(address, 1);
    *bad = first && first->device == device && !first->reservation ? first->address + first->size
                                                                   : address;
    return a && a->device == device;
}

bool memory_is_there(uint64_t address, uint64_t size, int device)
{
    uint64_t bad;
    const allocation *a = memory_find_run(address, size);
    return a && a->pool_block ? a->device == device : memory_is_usable(address, size, device, &bad);
}

static bool allocate(int device, uint64_t size, uint32_t pool_block, place where)
{
    unsigned char *data = sim.config.backed ? backing_new(size) : NULL;
    allocation *a = sim.config.backed && !data ? NULL : map_insert(where.address, where.span);
    if (!a) {
        backing_delete(data, size);
        return false;
    }
    a->size = size;
    a->device = device;
    a->data = data;
    a->pool_block = pool_block;
    a->buffer_id = ++sim.buffers;
    sim_device *d = &sim.devices[device];
    d->physical_bytes += pages_take(where.address, where.span, device);
    d->allocated_bytes += size;
    d->allocation_count++;
    return true;
}

bool memory_allocate(int device, uint64_t size, uint32_t pool_block, uint64_t *address)
{
    place where;
    bool is_done =
        placement_choose(device, size, &where) && allocate(device, size, pool_block, where);
    *address = is_done ? where.address : *address;
    return is_done;
}

bool memory_allocate_at(int device, uint64_t size, uint64_t address)
{
    place where;
    return placement_at(device, address, size, &where) && allocate(device, size, 0, where);
}

void memory_release(allocation *a)
{
    sim_device *d = &sim.devices[a->device];
    GMD_ASSERT(d->allocation_count && d->allocated_bytes >= a->size, "what goes was counted");
    d->physical_bytes -= pages_release(a->address, a->span);
    d->allocated_bytes -= a->size;
    d->allocation_count--;
    backing_delete(a->data, a->size);
    marks_forget(a->address, a->span);
    map_remove(a->address);
}

void memory_release_at(uint64_t address)
{
    allocation *a = map_find(address);
    GMD_ASSERT(a && a->address == address && !a->reservation, "an allocation begins there");
    memory_release(a);
}

void memory_release_device(int device)
{
    for (uint64_t from = 0;;) {
        allocation *a = map_at_or_above(from);
        if (a->device < 0) {
            return; /* the end marker */
        }
        from = a->address + a->span;
        if (a->device == device && a->reservation) {
            virtual_release(a);
        } else if (a->device == device) {
            memory_release(a);
        }
    }
}

/* The map is emptied at once afterwards, so nothing is removed from it one by one. */
void memory_reset(void)
{
    for (allocation *a = map_at_or_above(0); a->device >= 0; a = map_at_or_above(a->address + 1)) {
        bool is_of_pool = a->pool_block != 0;
        uint64_t chunk = is_of_pool ? chunk_span(a->pool_block) : 0;
        if (!a->reservation && (!is_of_pool || chunk)) {
            pages_release(a->address, is_of_pool ? chunk : a->span);
            backing_delete(a->data, is_of_pool ? chunk : a->size);
        }
    }
}
