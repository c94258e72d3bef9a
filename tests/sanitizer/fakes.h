/* fakes.h - what the tests and the libraries in place of CUDA's know of each other. */
#ifndef FAKES_H
#define FAKES_H

#include <stdint.h>

/* The fake libcupti's state, found by dlsym: one subscriber, and which calls it asked for. */
typedef struct fake_cupti {
    void (*callback)(void *context, int domain, uint32_t number, const void *call);
    void *context;
    int is_taken;
    int is_enabled[1024];
} fake_cupti;

/* A kernel of the fake libcuda: a CUfunction, or what the runtime passes in its place. */
typedef struct fake_kernel {
    int is_library_kernel;
    uint32_t count;
    uint32_t sizes[8];
} fake_kernel;

#define FAKE_BLOCKING_STREAM UINT64_C(0x8880)

#endif
