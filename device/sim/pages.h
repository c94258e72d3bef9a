/* pages.h - which 2 MiB pages of the 47-bit address space hold physical memory, and whose.
 *
 * One small record for each page in a table that the kernel commits where it is touched, so that
 * any address a real device may have given is as cheap as another. Small allocations share pages: a
 * page is taken from the device with its first user and returned with its last. */
#ifndef GMD_SIM_PAGES_H
#define GMD_SIM_PAGES_H

#include <stdbool.h>
#include <stdint.h>

bool pages_init(void); /* once for the process; false: no address space */

/* Bytes of physical memory that a device would have to give for the range; UINT64_MAX where one of
 * the pages belongs to another device. */
uint64_t pages_missing(uint64_t address, uint64_t size, int device);

/* Take and release a range; both return the bytes of physical memory that moved. */
uint64_t pages_take(uint64_t address, uint64_t size, int device);
uint64_t pages_release(uint64_t address, uint64_t size);

/* The page of that address has so many users, on that device. */
bool pages_are(uint64_t address, uint32_t users, int device);

#endif
