/* instrumented.c - cudaMalloc and cudaFree, and counts of them: built with -fsanitize=thread in
 * each way in which users do. */
#include "gmd_abi.h"
#include "gmd_cuda.h"

#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default")))

static _Atomic long live;

EXPORT void *gmd_malloc(size_t size, int device, cudaStream_t stream);
EXPORT void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream);
#ifdef ASKS_FOR_FIBERS
void *__tsan_create_fiber(unsigned flags);
#endif

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)device;
    (void)stream;
    void *memory = NULL;
#ifdef ASKS_FOR_FIBERS
    __tsan_create_fiber(0);
#endif
    if (cudaMalloc(&memory, size) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    atomic_fetch_add(&live, 1);
    return memory;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    cudaFree(pointer);
    atomic_fetch_sub(&live, 1);
}
