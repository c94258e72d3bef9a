/* What tests, oracles and fuzzers ask of memory, look at in it and leave there. */
#include "control.h"
#include "lock.h"
#include "marked_memory.h"
#include "marks.h"
#include "memory.h"
#include "virtual_memory.h"

#include <string.h>

static gmd_sim_range range_of(const allocation *a)
{
    return (gmd_sim_range){.address = a->address, .size = a->size, .device = a->device};
}

int gmd_sim_find(uint64_t address, gmd_sim_range *range)
{
    sim_lock();
    sim_start();
    const allocation *a = map_find_range(address, 1);
    if (a) {
        *range = range_of(a);
    }
    sim_unlock();
    return a ? 0 : -1;
}

bool gmd_sim_is_backed(uint64_t address, uint64_t size, int device, uint64_t *bad)
{
    uint64_t somewhere;
    bad = bad ? bad : &somewhere;
    sim_lock();
    sim_start();
    bool is_backed = memory_is_usable(address, size, device, bad);
    const allocation *a = is_backed ? map_find_range(address, size) : NULL;
    if (a && a->reservation) { /* access may also be to another device's memory */
        is_backed = virtual_is_memory_of(a, address, size, device, bad);
    }
    sim_unlock();
    return is_backed;
}

int gmd_sim_budget(int device, uint64_t bytes)
{
    sim_lock();
    sim_start();
    bool exists = device_exists(device);
    if (exists) {
        sim.devices[device].budget_bytes = bytes;
    }
    sim_unlock();
    return exists ? 0 : -1;
}

int gmd_sim_occupy(int device, uint64_t address, uint64_t size)
{
    sim_lock();
    sim_start();
    bool is_done = device_exists(device) && memory_allocate_at(device, size, address);
    sim_unlock();
    return is_done ? 0 : -1;
}

int gmd_sim_vacate(uint64_t address)
{
    sim_lock();
    sim_start();
    const allocation *a = map_find_range(address, 1);
    bool is_there = a && a->address == address && !a->reservation && !a->pool_block;
    if (is_there) {
        memory_release_at(address);
    }
    sim_unlock();
    return is_there ? 0 : -1;
}

void gmd_sim_each_allocation(int device, void (*visit)(void *context, const gmd_sim_range *range),
                             void *context)
{
    uint64_t from = 0;
    for (bool more = true; more;) {
        sim_lock(); /* not while visiting: the visitor may use the control API */
        sim_start();
        const allocation *a = map_at_or_above(from);
        more = a->device >= 0;
        bool is_memory = !a->reservation;
        gmd_sim_range range = range_of(a);
        from = a->address + 1;
        sim_unlock();
        if (more && is_memory && range.device == device) {
            visit(context, &range);
        }
    }
}

/* The host memory behind a device range, NULL when it is not one live, backed range. */
static unsigned char *backed_range(uint64_t address, uint64_t size)
{
    uint64_t bad;
    allocation *a = map_find_range(address, size);
    bool is_there =
        a && a->data && (!a->reservation || virtual_is_usable(a, address, size, a->device, &bad));
    return is_there ? a->data + (address - a->address) : NULL;
}

int gmd_sim_peek(uint64_t address, void *to, size_t size)
{
    sim_lock();
    sim_start();
    const unsigned char *data = backed_range(address, size);
    if (data) {
        memcpy(to, data, size);
    }
    sim_unlock();
    return data ? 0 : -1;
}

int gmd_sim_poke(uint64_t address, const void *from, size_t size)
{
    sim_lock();
    sim_start();
    unsigned char *data = backed_range(address, size);
    if (data) {
        memcpy(data, from, size);
    }
    sim_unlock();
    return data ? 0 : -1;
}

/* --- marks ------------------------------------------------------------------------------- */

void gmd_sim_mark(uint64_t address, uint64_t size, uint64_t mark)
{
    sim_lock();
    sim_start();
    marks_start();
    marks_write(address, size, mark);
    sim_unlock();
}

int gmd_sim_find_mark(uint64_t address, uint64_t size, uint64_t mark, gmd_sim_marked *out)
{
    sim_lock();
    sim_start();
    bool is_known = marks_find(address, size, mark, out);
    sim_unlock();
    return is_known ? 0 : -1;
}
