/* lacking.c - an allocator that needs a function of another library. */
#include <cuda_runtime_api.h>

void *take_from_pool(size_t size);

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)device;
    (void)stream;
    return take_from_pool(size);
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    cudaFree(ptr);
}
