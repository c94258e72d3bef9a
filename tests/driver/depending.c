/* depending.c - an allocator whose work another library does, which is the one compiled with
 * -fsanitize=thread. */
#include "gmd_cuda.h"

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

void *gmd_malloc(size_t size, int device, cudaStream_t stream);
void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream);
EXPORT void *my_malloc(size_t size, int device, cudaStream_t stream);
EXPORT void my_free(void *pointer, size_t size, int device, cudaStream_t stream);

void *my_malloc(size_t size, int device, cudaStream_t stream)
{
    return gmd_malloc(size, device, stream);
}

void my_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    gmd_free(pointer, size, device, stream);
}
