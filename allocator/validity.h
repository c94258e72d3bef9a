/* validity.h - whether all that the allocator keeps of a device agrees: blocks tile their segments,
 * sets, maps and pending frees have each block once, free neighbours are merged, figures are sums.
 *
 * A walk takes as long as there are blocks, so where a state is left (device_leave, and the end of
 * a request that a cached block served) one is made each time only as long as there are very few;
 * with more of them, as often as keeps the walks a constant part of all time. Which ones are made
 * depends only on the requests. The end of an allocator is always checked.
 *
 * Each function gives the sentence that does not hold; NULL: all does. No host memory is needed. */
#ifndef GMD_VALIDITY_H
#define GMD_VALIDITY_H

#include "device_allocator.h"

/* Checks one heap, which the caller has entered, or has with the device. Pending blocks are left
 * out. */
const char *heap_violation(heap *h);

/* Checks all; the caller has exclusive access to the device. */
const char *device_violation(device_allocator *d);

/* Likewise, when a walk is due. */
const char *heap_due_violation(heap *h);
const char *device_due_violation(device_allocator *d);

#endif
