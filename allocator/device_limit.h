/* device_limit.h - how much of a device's memory may be reserved. */
#ifndef GMD_DEVICE_LIMIT_H
#define GMD_DEVICE_LIMIT_H

#include "device_allocator.h"

/* Total memory of a device, in bytes. */
bool device_total_bytes(int device, uint64_t *total_bytes);

/* Sets the limit that the settings ask for, once: the device's total is not known before a first
 * request. */
void device_resolve_limit(device_allocator *d);
void device_set_limit(device_allocator *d, uint64_t bytes);

/* So many more bytes may be reserved. */
static inline bool device_is_within_limit(const device_allocator *d, uint64_t more)
{
    uint64_t reserved = statistics_reserved(&d->stats);
    return more <= d->limit_bytes && reserved <= d->limit_bytes - more;
}

#endif
