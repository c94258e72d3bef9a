/* names.c - an allocator under names that gmd does not try. */
#include <cuda_runtime_api.h>

void *pool_alloc(size_t size, int device, cudaStream_t stream)
{
    void *memory = NULL;
    (void)device;
    (void)stream;
    return cudaMalloc(&memory, size) == cudaSuccess ? memory : NULL;
}

void pool_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    cudaFree(ptr);
}
