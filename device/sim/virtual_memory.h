/* virtual_memory.h - address ranges, what physical memory is mapped where, and who may touch it. */
#ifndef GMD_SIM_VIRTUAL_MEMORY_H
#define GMD_SIM_VIRTUAL_MEMORY_H

#include "address_map.h"
#include "call_record.h"

/* Each answers a call with its status. */
int virtual_reserve(sim_call *call, CUdeviceptr *out, size_t size, size_t alignment,
                    CUdeviceptr wanted, unsigned long long flags);
int virtual_free(sim_call *call, uint64_t address, uint64_t size);
int virtual_map(sim_call *call, uint64_t address, uint64_t size, uint64_t offset,
                CUmemGenericAllocationHandle handle, unsigned long long flags);
int virtual_unmap(sim_call *call, uint64_t address, uint64_t size);
int virtual_set_access(sim_call *call, uint64_t address, uint64_t size,
                       const CUmemAccessDesc *access, size_t count);
int virtual_get_access(sim_call *call, unsigned long long *flags, const CUmemLocation *location,
                       uint64_t address);
int virtual_retain(sim_call *call, CUmemGenericAllocationHandle *handle, uint64_t address);

/* What others ask. `a` is the address range of a reservation in the map. */
bool virtual_is_usable(const allocation *a, uint64_t address, uint64_t size, int device,
                       uint64_t *bad);
/* All of it is mapped, and physical memory of that device. */
bool virtual_is_memory_of(const allocation *a, uint64_t address, uint64_t size, int device,
                          uint64_t *bad);
bool virtual_is_mapped(const allocation *a, uint64_t address, uint64_t *start);
/* The place of what is mapped at `address`, and how much of `size` lies in one run there. False:
 * nothing is. */
bool virtual_place(const allocation *a, uint64_t address, uint64_t size, uint64_t *at,
                   uint64_t *length);

void virtual_release(allocation *a); /* with what is mapped in it */
void virtual_reset(void);

/* What does not hold of reservations, mappings, handles and the figures of them; NULL: all does.
 * Adds the bytes of physical memory to each device's. */
const char *virtual_violation(uint64_t bytes[GMD_SIM_DEVICE_MAX]);

#endif
