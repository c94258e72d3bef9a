/* expandable.h - blocks of expandable segments: ranges of addresses that are mapped where blocks
 * need them and unmapped where none do (expandable_segments:True). A segment serves one stream and
 * one pool, and reserves an eighth more addresses than the device has memory, so that it can grow
 * at its end when there are holes. The caller has exclusive access to the device. */
#ifndef GMD_EXPANDABLE_H
#define GMD_EXPANDABLE_H

#include "device_allocator.h"

/* A block of at least `size` bytes, in no set, for which pages were mapped; NULL: the limit or the
 * device refuses. Pages that were mapped before it refused are free blocks now. */
block *expandable_add(device_allocator *d, free_set *set, uint64_t size);

/* Gives back all pages of the set that are wholly free, and the addresses of segments that had some
 * and have none now. */
void expandable_release_free(device_allocator *d, free_set *set);

/* Gives back the addresses of every segment that has no pages. */
void expandable_release_empty(device_allocator *d);

/* Segments that are left keep their pages and addresses, which nobody knows of any more. */
void expandable_abandon(device_allocator *d);

#endif
