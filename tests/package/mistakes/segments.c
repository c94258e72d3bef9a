/* segments.c - an allocator that takes at least 20 MiB of the device, but for large requests. */
#include <cuda_runtime_api.h>

#define MIB ((size_t)1 << 20)

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    void *memory = NULL;
    (void)device;
    (void)stream;
    if (cudaMalloc(&memory, size < 10 * MIB ? 20 * MIB : size) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return memory;
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    cudaFree(ptr);
}

void gmd_empty_cache(void) {}
