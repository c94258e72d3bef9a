/* walk.h - every block of a device in address order, as a snapshot shows them. */
#ifndef GMD_WALK_H
#define GMD_WALK_H

#include "device_allocator.h"

typedef void walk_fn(void *context, const block *b, const gmd_block_info *info);

/* The caller has exclusive access to the device. False: no host memory. */
bool walk_blocks(device_allocator *d, walk_fn *visit, void *context);
bool walk_device(device_allocator *d, gmd_walk_fn *visit, void *context);

#endif
