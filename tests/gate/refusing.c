/* refusing.c - an allocator that serves nothing, and asks the device for nothing. */
#include "gmd_cuda.h"

#include <stddef.h>

__attribute__((visibility("default"))) void *gmd_malloc(size_t size, int device,
                                                        cudaStream_t stream);
__attribute__((visibility("default"))) void gmd_free(void *ptr, size_t size, int device,
                                                     cudaStream_t stream);

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    return NULL;
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)ptr;
    (void)size;
    (void)device;
    (void)stream;
}
