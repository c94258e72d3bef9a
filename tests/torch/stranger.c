/* An allocator that was linked with a CUDA runtime of a version that gmd does not simulate. */
#include <stddef.h>

int cudaRuntimeGetVersion(int *version);
__attribute__((visibility("default"))) void *gmd_malloc(size_t size, int device, void *stream);
__attribute__((visibility("default"))) void gmd_free(void *ptr, size_t size, int device,
                                                     void *stream);

void *gmd_malloc(size_t size, int device, void *stream)
{
    int version;
    (void)size;
    (void)device;
    (void)stream;
    (void)cudaRuntimeGetVersion(&version);
    return NULL;
}

void gmd_free(void *ptr, size_t size, int device, void *stream)
{
    (void)ptr;
    (void)size;
    (void)device;
    (void)stream;
}
