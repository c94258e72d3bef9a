/* device_access.h - exclusive access to a device, which every request needs but one that a cached
 * block serves (device_allocator.h). */
#ifndef GMD_DEVICE_ACCESS_H
#define GMD_DEVICE_ACCESS_H

#include "device_allocator.h"

/* Waits for whoever has the device, and for those who are in its heaps. */
void device_enter(device_allocator *d);

void device_leave(device_allocator *d);

#endif
