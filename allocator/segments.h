/* segments.h - segments of cudaMalloc: one block each when they come and when they go. The caller
 * has exclusive access to the device. */
#ifndef GMD_SEGMENTS_H
#define GMD_SEGMENTS_H

#include "device_allocator.h"

/* A new segment as one block that is in no set; NULL: the limit or the device refuses. */
block *segments_add(device_allocator *d, free_set *set, uint64_t size);

/* Gives a whole free segment back. False: the device refuses; it stays in the cache. */
bool segments_release(device_allocator *d, block *b);

/* Gives back what is wholly free in a pool: pages of expandable segments, and segments. */
void segments_release_pool(device_allocator *d, pool *p);

/* For an oversize request: gives back as many oversize blocks of its stream as it needs, the
 * smallest one that is enough or else the largest ones. False: that does not make up its size. */
bool segments_release_oversize(device_allocator *d, free_set *set, uint64_t size);

/* Gives back free segments that have been passed over longest, until reserved memory is at the
 * threshold of the settings. */
void segments_collect_garbage(device_allocator *d, pool *p);

#endif
