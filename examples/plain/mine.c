/* mine.c - the smallest allocator that gmd can drive: cudaMalloc and cudaFree behind the two
 * functions of a pluggable allocator. The others that gmd looks for are in gmd_abi.h, which has the
 * compiler check these. */
#include <cuda_runtime_api.h>
#include <gmd_abi.h>

/* False: there is no such device. The thread's current device is its caller's: each function puts
 * `*before` back. */
static bool enter(int device, int *before)
{
    return cudaGetDevice(before) == cudaSuccess &&
           (device == *before || cudaSetDevice(device) == cudaSuccess);
}

static void leave(int device, int before)
{
    if (device != before) {
        cudaSetDevice(before);
    }
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)stream; /* new memory has no earlier work to wait for */
    int before;
    if (!enter(device, &before)) {
        return NULL;
    }
    void *memory = NULL;
    if (cudaMalloc(&memory, size ? size : 1) != cudaSuccess) {
        cudaGetLastError(); /* handled here: nobody else is to see it */
        memory = NULL;
    }
    leave(device, before);
    return memory;
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)stream; /* cudaFree waits for all work on the device */
    int before;
    if (enter(device, &before)) {
        cudaFree(ptr);
        leave(device, before);
    }
}
