/* bare.c - the least that an allocator can be: PyTorch's pluggable pair, straight to the device. */
#include "gmd_cuda.h"

#ifndef EXPORT
#define EXPORT __attribute__((visibility("default")))
#endif

EXPORT void *my_malloc(size_t size, int device, cudaStream_t stream);
EXPORT void my_free(void *ptr, size_t size, int device, cudaStream_t stream);

void *my_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)stream;
    void *memory = 0;
    if (cudaSetDevice(device) != cudaSuccess || cudaMalloc(&memory, size) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return memory;
}

void my_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    cudaFree(ptr);
}
