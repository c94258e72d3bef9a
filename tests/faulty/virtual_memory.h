/* virtual_memory.h - the driver's virtual memory calls as virtual_pool.c needs them: a range of
 * addresses whose pages (granules of the device) are mapped and unmapped one by one. */
#ifndef VIRTUAL_MEMORY_H
#define VIRTUAL_MEMORY_H

#include "faulty.h"

/* The order is that of faulty_defects in virtual_pool.c. */
enum {
    PYTORCH188008,
    VLLM34602,
    VLLM36651,
    PYTORCH134338,
    PYTORCH196258,
    KOKKOS9433,
    TFDML341,
    PADDLE79605,
    VLLM37111,
    HIP_EP1068,
    PYTORCH61567,
    CAP_BEFORE_STEP,
    ACCESS_NOT_SET,
    RESERVATION_LEAKED,
    HANDLE_LEAKED,
    UNMAPS_TOO_MUCH,
    MEMORY_OF_CURRENT,
    LOCK_LEFT,
    DEVICE_LEFT_AT_FAILURE,
    FREED_WHILE_MAPPED,
    RELEASED_TWICE,
};

#define PAGE ((uint64_t)2 << 20)

typedef enum page_state { PAGE_EMPTY, PAGE_CREATED, PAGE_MAPPED, PAGE_READY } page_state;

typedef struct range {
    uint64_t address;
    size_t pages, end; /* nothing was ever mapped at `end` or beyond */
    int device;
    unsigned char *states; /* page_state */
    CUmemGenericAllocationHandle *handles;
    gmd_stats *stats; /* of the device: what is mapped is reserved */
} range;

/* Memory that was unmapped and is still to be released. */
typedef struct victims {
    CUmemGenericAllocationHandle *handles;
    size_t count, capacity;
} victims;

bool range_reserve(range *r, uint64_t size, int device, gmd_stats *stats);
/* All of it must be empty. */
void range_free(range *r);
bool range_is_empty(const range *r);
/* The pages of [first, last] can be used, or are as they were before. */
bool range_map(range *r, size_t first, size_t last);
void range_unmap(range *r, size_t page, victims *v);
void victims_release(victims *v);

#endif
