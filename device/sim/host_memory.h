/* host_memory.h - page-locked host memory: allocated here, or registered by the program that owns
 * it. */
#ifndef GMD_SIM_HOST_MEMORY_H
#define GMD_SIM_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pinned {
    unsigned char *memory;
    uint64_t size, buffer_id;
    unsigned flags;
    int device; /* current when it was allocated or registered */
    bool is_registered;
} pinned;

/* The one that holds the whole range, until the next one is added or removed; NULL: none. */
pinned *host_find(const void *pointer, uint64_t size);
/* Part of the range is in one. */
bool host_overlaps(const void *pointer, uint64_t size);

bool host_add(const pinned *p); /* false: the host has no memory */
void host_remove(pinned *p);    /* from the list: the memory itself stays */
void host_reset(void);

#endif
