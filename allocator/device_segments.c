#include "device_segments.h"

#include "gmd_assert.h"

bool device_reserve_segment(device_allocator *d)
{
    return places_reserve(&d->places) && gmd_intervals_reserve(&d->owners);
}

uint64_t device_add_segment(device_allocator *d, uint64_t address, uint64_t size, free_set *set)
{
    uint64_t place = places_add(&d->places, address, size);
    bool is_added = gmd_intervals_insert(&d->owners, place, place + size, (uint64_t)(uintptr_t)set);
    GMD_ASSERT(is_added, "room for the segment was reserved");
    return place;
}

void device_remove_segment(device_allocator *d, uint64_t place)
{
    places_remove(&d->places, place);
    gmd_intervals_remove(&d->owners, place);
}

free_set *device_set_at(const device_allocator *d, uint64_t place)
{
    const gmd_interval *found = gmd_intervals_after(&d->owners, place);
    return found && found->address <= place ? (free_set *)(uintptr_t)found->value : NULL;
}

void device_release_segments(device_allocator *d)
{
    places_release(&d->places);
    gmd_intervals_free(&d->owners);
}
