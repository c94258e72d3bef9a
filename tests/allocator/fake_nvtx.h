/* fake_nvtx.h - a tool of NVTX's, for tests: it takes the functions for memory, and keeps what it
 * is told. Found by dlsym as fake_nvtx_state. */
#ifndef FAKE_NVTX_H
#define FAKE_NVTX_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_HEAPS = 16, FAKE_REGIONS = 64 };

typedef struct fake_region {
    uint64_t address, bytes;
    void *heap;
} fake_region;

typedef struct fake_nvtx {
    int refuses;                   /* it wants to know of no memory */
    char domain[32];               /* the name of the one that was made */
    fake_region heaps[FAKE_HEAPS]; /* whose handles are their addresses here, or NULL */
    size_t heap_count;
    fake_region regions[FAKE_REGIONS]; /* that are registered now */
    size_t region_count;
    size_t bad_calls; /* unknown heaps and regions, regions that overlap, other domains */
} fake_nvtx;

#endif
