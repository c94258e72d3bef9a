/* device_access.h - to have a device alone, as all but requests that a cached block serves need to
 * (device_allocator.h). */
#ifndef GMD_DEVICE_ACCESS_H
#define GMD_DEVICE_ACCESS_H

#include "device_allocator.h"

/* Waits for whoever has the device, and for those who are in its heaps. */
void device_enter(device_allocator *d);

void device_leave(device_allocator *d);

#endif
