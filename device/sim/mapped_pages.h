/* mapped_pages.h - tables with one record for each page of an address range that is reserved.
 *
 * Allocators reserve and free such ranges all the time, and a table of the kernel's for each costs
 * more than all that is done with it: those that are given back wait for the next reservation. */
#ifndef GMD_SIM_MAPPED_PAGES_H
#define GMD_SIM_MAPPED_PAGES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mapped_page {
    uint32_t physical; /* slot; 0: nothing is mapped */
    bool is_first;     /* of a mapping */
    uint32_t access;   /* two bits a device: CUmemAccess_flags */
} mapped_page;

/* All zero; the kernel commits it where it is touched. NULL: no address space. */
mapped_page *mapped_pages_take(uint64_t count);
/* All zero again: nothing is mapped any more. */
void mapped_pages_give_back(mapped_page *pages, uint64_t count);

#endif
