/* loan.h - the memory of a device lent to other processes: what is live is copied to the host,
 * the memory goes back to the device, and the addresses stay reserved, so that all can come back
 * where it was. Only memory of expandable segments can: addresses of cudaMalloc are the driver's.
 *
 * While it is lent nothing is allocated; blocks may be freed, and are not brought back then. The
 * caller has exclusive access to the device. */
#ifndef GMD_LOAN_H
#define GMD_LOAN_H

#include "device_allocator.h"

gmd_status loan_yield(device_allocator *d, gmd_error *error);
gmd_status loan_restore(device_allocator *d, gmd_error *error);

/* The blocks are gone, or never come back: drops the image. */
void loan_forget(device_allocator *d);

static inline bool loan_is_yielded(const device_allocator *d)
{
    return d->loan;
}

#endif
