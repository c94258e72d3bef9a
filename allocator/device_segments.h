/* device_segments.h - where the segments of a device lie, and which heap each is of: the owner of
 * an address is found in O(log n), however many streams there are. The caller has exclusive access
 * to the device. */
#ifndef GMD_DEVICE_SEGMENTS_H
#define GMD_DEVICE_SEGMENTS_H

#include "device_allocator.h"

/* Makes room for one more segment, so that the following add cannot fail. */
bool device_reserve_segment(device_allocator *d);

/* The device gave a segment for blocks of the set; gives its place (places.h). */
uint64_t device_add_segment(device_allocator *d, uint64_t address, uint64_t size, free_set *set);
void device_remove_segment(device_allocator *d, uint64_t place);

/* The set of the blocks in the segment with that place; NULL: none has it. */
free_set *device_set_at(const device_allocator *d, uint64_t place);

void device_release_segments(device_allocator *d); /* frees what is kept of them */

#endif
