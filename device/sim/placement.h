/* placement.h - where cudaMalloc puts an allocation, and where cuMemAddressReserve a range. */
#ifndef GMD_SIM_PLACEMENT_H
#define GMD_SIM_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

/* Where an allocation of `size` bytes goes, and the address space it takes there. False: no free
 * address or no physical memory for it. */
typedef struct place {
    uint64_t address, span;
} place;
bool placement_choose(int device, uint64_t size, place *out);
/* At this address, if it is one of the device's, free, and there is physical memory. */
bool placement_at(int device, uint64_t address, uint64_t size, place *out);
/* Free addresses for a reservation, outside of the devices' windows; 0: none. */
uint64_t placement_reserve(uint64_t size, uint64_t alignment, uint64_t wanted);
bool placement_owns(uint64_t address); /* in any device's window: never a host address */
void placement_reset_device(int device);
/* The configuration's devices fit the address space. */
bool placement_can_hold(uint32_t device_count, uint64_t capacity_bytes);

#endif
