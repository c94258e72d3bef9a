/* memory.h - device memory: allocation, accounting, and who may touch it. */
#ifndef GMD_SIM_MEMORY_H
#define GMD_SIM_MEMORY_H

#include "address_map.h"

/* The allocation that holds the whole range, for work that runs now: memory of a pool may be cut
 * otherwise than when it was queued. NULL: none. */
allocation *memory_find_run(uint64_t address, uint64_t size);
/* Work on `device` can read and write every byte; `bad` gets the first that it cannot. */
bool memory_is_usable(uint64_t address, uint64_t size, int device, uint64_t *bad);
/* Likewise for work that runs now: all of it is still there. */
bool memory_is_there(uint64_t address, uint64_t size, int device);

/* A new allocation of `size` > 0 bytes; false: out of memory. */
bool memory_allocate(int device, uint64_t size, uint32_t pool_block, uint64_t *address);
/* Likewise, and at this address. */
bool memory_allocate_at(int device, uint64_t size, uint64_t address);
void memory_release(allocation *a);
void memory_release_at(uint64_t address); /* an allocation begins there */
void memory_release_device(int device);   /* all that one device has given, but to pools */
void memory_reset(void);                  /* likewise every device, and the map is emptied next */

#endif
