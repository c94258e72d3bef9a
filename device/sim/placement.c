/* Where cudaMalloc puts an allocation. Each device has a window of addresses that no process maps:
 * above where Linux starts bottom-up mappings (0x2aaa..) and below programs (0x55..) and top-down
 * mappings (0x7f..). Its lower half takes allocations of whole pages, its upper half the small
 * ones, which share pages. The addresses are numbers only; data, if any, lies elsewhere. */
#include "placement.h"

#include "address_map.h"
#include "pages.h"
#include "state.h"

#include "gmd_min.h"

#define WINDOWS_BEGIN 0x300000000000u
#define WINDOWS_BYTES 0x200000000000u /* 32 TiB */
#define SMALL_LIMIT   (GMD_SIM_PAGE_BYTES / 2)
#define SMALL_UNIT    512u

/* Also below where Linux begins its mappings, and below the devices' windows. */
#define RESERVATIONS_BEGIN 0x100000000000u
#define RESERVATIONS_END   0x2a0000000000u

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Half of a window: for each of up to this many devices. */
static uint64_t half_window(uint32_t device_count)
{
    uint32_t count = 1;
    while (count < device_count) {
        count *= 2;
    }
    return WINDOWS_BYTES / count / 2;
}

bool placement_can_hold(uint32_t device_count, uint64_t capacity_bytes)
{
    return capacity_bytes <= half_window(device_count);
}

/* The addresses that one device's allocations are placed in. */
static place window_of(int device)
{
    uint64_t half = half_window(sim.config.device_count);
    return (place){.address = WINDOWS_BEGIN + (uint64_t)device * half * 2, .span = half * 2};
}

bool placement_owns(uint64_t address)
{
    return address - WINDOWS_BEGIN < WINDOWS_BYTES ||
           address - RESERVATIONS_BEGIN < RESERVATIONS_END - RESERVATIONS_BEGIN;
}

void placement_reset_device(int device)
{
    place window = window_of(device);
    sim.devices[device].budget_bytes = UINT64_MAX;
    sim.devices[device].next_large = window.address;
    sim.devices[device].next_small = window.address + window.span / 2;
}

/* What is to be placed, and the part of the window that is for it. */
typedef struct demand {
    int device;
    bool is_small;
    uint64_t span, begin, end;
} demand;

static bool has_memory(const demand *d, uint64_t address)
{
    uint64_t missing = pages_missing(address, d->span, d->device);
    return missing <= memory_left(d->device);
}

/* The first address in [from, to) where the demand fits, small ones within one page; 0: none. */
static uint64_t fit(const demand *d, uint64_t from, uint64_t to)
{
    uint64_t unit = d->is_small ? SMALL_UNIT : GMD_SIM_PAGE_BYTES;
    from = round_up(from, unit);
    if (d->is_small && from / GMD_SIM_PAGE_BYTES != (from + d->span - 1) / GMD_SIM_PAGE_BYTES) {
        from = round_up(from, GMD_SIM_PAGE_BYTES);
    }
    return from < to && d->span <= to - from ? from : 0;
}

/* The lowest free address at or above `from`; 0: none. */
static uint64_t lowest_free(const demand *d, uint64_t from)
{
    uint64_t above = from;
    for (const allocation *next; (next = map_next_gap(above, d->span)); above = next->address) {
        uint64_t begin = next->address - next->gap;
        uint64_t found = fit(d, gmd_max(begin, from), gmd_min(next->address, d->end));
        if (found || next->address >= d->end) {
            return found;
        }
    }
    return 0;
}

/* The lowest free address in pages that the device has given already: what is left when there is no
 * page more. 0: none. */
static uint64_t lowest_in_used_page(const demand *d)
{
    for (uint64_t from = d->begin, found; (found = lowest_free(d, from));) {
        if (pages_missing(found, d->span, d->device) == 0) {
            return found;
        }
        /* Not here: on to the page of the next allocation, where there is one. */
        const allocation *next = map_at_or_above(found);
        if (next->address >= d->end) {
            return 0;
        }
        uint64_t page = next->address / GMD_SIM_PAGE_BYTES * GMD_SIM_PAGE_BYTES;
        from = page > found ? page : next->address + next->span;
    }
    return 0;
}

static uint64_t place_ascending(const demand *d)
{
    sim_device *device = &sim.devices[d->device];
    uint64_t *next = d->is_small ? &device->next_small : &device->next_large;
    uint64_t found = lowest_free(d, *next);
    if (found && has_memory(d, found)) {
        *next = found + d->span;
        return found;
    }
    return found ? found : lowest_free(d, d->begin); /* the window is used up */
}

/* A seeded place among four times the device's capacity, so that addresses do come back. */
static uint64_t place_random(const demand *d)
{
    uint64_t unit = d->is_small ? SMALL_UNIT : GMD_SIM_PAGE_BYTES;
    uint64_t units = (d->end - d->begin) / unit;
    uint64_t near = sim.config.capacity_bytes / unit * 4;
    units = gmd_min(near, units);
    uint64_t found = lowest_free(d, d->begin + gmd_random_next(&sim.random) % units * unit);
    return found ? found : lowest_free(d, d->begin);
}

/* The next recorded address, when it is for this request and possible; else the list is given up.
 */
static bool place_recorded(const demand *asked, uint64_t size, place *out)
{
    if (sim.recorded_broken || sim.recorded_next >= sim.config.recorded_count) {
        sim.recorded_broken = true;
        return false;
    }
    const gmd_sim_recorded *r = &sim.config.recorded[sim.recorded_next];
    demand d = {.device = asked->device, .span = round_up(size, SMALL_UNIT)};
    if (r->size != size || r->address == 0 || r->address % SMALL_UNIT != 0 ||
        !map_is_free(r->address, d.span) || !has_memory(&d, r->address)) {
        sim.recorded_broken = true;
        return false;
    }
    sim.recorded_next++;
    *out = (place){.address = r->address, .span = d.span};
    return true;
}

static uint64_t recorded_reservation(uint64_t size, uint64_t alignment)
{
    if (sim.config.placement != GMD_SIM_RECORDED ||
        sim.recorded_next_reservation >= sim.config.recorded_reservation_count) {
        return 0;
    }
    uint64_t address = sim.config.recorded_reservations[sim.recorded_next_reservation++];
    return address && address % alignment == 0 && address + size <= ADDRESS_SPACE_END &&
                   map_is_free(address, size)
               ? address
               : 0;
}

uint64_t placement_reserve(uint64_t size, uint64_t alignment, uint64_t wanted)
{
    uint64_t recorded = recorded_reservation(size, alignment);
    if (recorded) {
        return recorded;
    }
    if (wanted && wanted % alignment == 0 && wanted < ADDRESS_SPACE_END - size &&
        map_is_free(wanted, size)) {
        return wanted;
    }
    demand d = {.span = size, .begin = RESERVATIONS_BEGIN, .end = RESERVATIONS_END};
    for (uint64_t from = RESERVATIONS_BEGIN;;) {
        uint64_t found = lowest_free(&d, from);
        if (!found || found % alignment == 0) {
            return found;
        }
        from = round_up(found, alignment);
        if (from + size <= d.end && map_is_free(from, size)) {
            return from;
        }
    }
}

bool placement_at(int device, uint64_t address, uint64_t size, place *out)
{
    place window = window_of(device);
    uint64_t offset = address - window.address;
    demand d = {.device = device,
                .span = round_up(size, size < SMALL_LIMIT ? SMALL_UNIT : GMD_SIM_PAGE_BYTES)};
    *out = (place){.address = address, .span = d.span};
    return size && size <= sim.config.capacity_bytes && address % SMALL_UNIT == 0 &&
           offset < window.span && d.span <= window.span - offset && map_is_free(address, d.span) &&
           has_memory(&d, address);
}

bool placement_choose(int device, uint64_t size, place *out)
{
    if (size > sim.config.capacity_bytes) {
        return false;
    }
    place window = window_of(device);
    uint64_t middle = window.address + window.span / 2;
    bool is_small = size < SMALL_LIMIT;
    demand d = {.device = device,
                .is_small = is_small,
                .span = round_up(size, is_small ? SMALL_UNIT : GMD_SIM_PAGE_BYTES),
                .begin = is_small ? middle : window.address,
                .end = is_small ? window.address + window.span : middle};
    if (!is_small && d.span > memory_left(device)) {
        return false; /* before the recorded list is asked: it has successes only */
    }
    if (sim.config.placement == GMD_SIM_RECORDED && place_recorded(&d, size, out)) {
        return true;
    }
    uint64_t found = sim.config.placement == GMD_SIM_REUSE_FIRST ? lowest_free(&d, d.begin)
                     : sim.config.placement == GMD_SIM_RANDOM    ? place_random(&d)
                                                                 : place_ascending(&d);
    if (found && !has_memory(&d, found)) {
        found = is_small ? lowest_in_used_page(&d) : 0;
    }
    *out = (place){.address = found, .span = d.span};
    return found != 0;
}
