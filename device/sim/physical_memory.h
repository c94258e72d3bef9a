/* physical_memory.h - memory of cuMemCreate: it lives until its handle is released as often as it
 * was given and nothing of it is mapped. */
#ifndef GMD_SIM_PHYSICAL_MEMORY_H
#define GMD_SIM_PHYSICAL_MEMORY_H

#include "call_record.h"

typedef struct physical {
    CUmemGenericAllocationHandle handle; /* 0: the slot is free */
    CUmemAllocationProp properties;
    uint64_t size;
    uint64_t place;      /* of its marks */
    int file;            /* that holds the data: what maps it twice sees it twice; -1: unbacked */
    uint32_t references; /* by the handle: created, retained */
    uint32_t mapped;     /* pages of it that are mapped, each as often as it is */
    uint32_t next_free;
    uint32_t pages_seen; /* by the latest check, see virtual_violation */
} physical;

physical *physical_find(CUmemGenericAllocationHandle handle); /* NULL: none */

/* Memories by number, which stays while they live; pointers do so until the next cuMemCreate. */
uint32_t physical_number(const physical *p); /* never 0 */
physical *physical_at(uint32_t number);

/* Answers a call with its status. */
int physical_create(sim_call *call, CUmemGenericAllocationHandle *out, size_t size,
                    const CUmemAllocationProp *properties, unsigned long long flags);
int physical_none(sim_call *call); /* misuse: the handle is none */

void physical_forget_if_unused(physical *p);
void physical_reset(void);

static inline bool is_whole_pages(uint64_t value)
{
    return value % GMD_SIM_PAGE_BYTES == 0;
}

/* Checks memories and the figures of them; before it, pages_seen has what is mapped of each. */
void physical_begin_check(void);
const char *physical_violation(uint64_t bytes[GMD_SIM_DEVICE_MAX]);

#endif
