/* guard_types.h - what a guard is made with. */
#ifndef GMD_GUARD_TYPES_H
#define GMD_GUARD_TYPES_H

#include "mappings.h"
#include "options.h"
#include "report.h"
#include "sweeps.h"

typedef struct guard guard;

/* Functions of gmd_abi.h. */
typedef struct guard_allocator {
    void *(*malloc)(size_t size, int device, cudaStream_t stream);
    void (*free)(void *ptr, size_t size, int device, cudaStream_t stream);
    void (*record_stream)(void *ptr, cudaStream_t stream);
    void (*empty_cache)(void);
    uint32_t (*keep_stack)(void);
    stack_text_fn *stack_text;
} guard_allocator;

#endif
