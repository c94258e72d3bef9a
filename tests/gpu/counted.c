/* counted.c - an allocator that leaves a line in the file $GMD_TEST_LOADED for each process that
 * loads it. */
#include "gmd_cuda.h"

#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void *gmd_malloc(size_t size, int device, cudaStream_t stream);
EXPORT void gmd_free(void *memory, size_t size, int device, cudaStream_t stream);

__attribute__((constructor)) static void count(void)
{
    const char *path = getenv("GMD_TEST_LOADED");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fputs("loaded\n", file);
        fclose(file);
    }
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    void *memory = NULL;
    (void)stream;
    if (cudaSetDevice(device) != cudaSuccess ||
        cudaMalloc(&memory, size ? size : 1) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return memory;
}

void gmd_free(void *memory, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    cudaFree(memory);
}
