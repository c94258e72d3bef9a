/* cudamalloc.c - libgmd_cudamalloc.so: cudaMalloc and cudaFree with the ABI of gmd_abi.h, nothing
 * in between. The floor that every allocator is compared with: no cache, no waste, slow. A memory
 * fraction could only be pretended, so there is none; cudaFree waits for the device, so there is no
 * stream to record. Sync: the books have a lock. */
#include "books.h"
#include "gmd_abi.h"
#include "gmd_cuda.h"

#define GMD_EXPORT __attribute__((visibility("default")))

/* Declared here because the ABI is found by name: there is no header for callers to include. */
GMD_EXPORT void *gmd_malloc(size_t size, int device, cudaStream_t stream);
GMD_EXPORT void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream);
GMD_EXPORT void gmd_empty_cache(void);
GMD_EXPORT int gmd_get_stats(int device, gmd_stats *out);
GMD_EXPORT void gmd_reset_peak_stats(int device);
GMD_EXPORT const char *gmd_last_error(void);

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)stream;
    int previous;
    void *memory = NULL;
    if (!device_enter(device, &previous)) {
        return NULL;
    }
    cudaError_t result = cudaMalloc(&memory, size);
    if (result != cudaSuccess) {
        (void)cudaGetLastError(); /* a refusal is an answer; the thread is left as it was */
        memory = NULL;
    }
    device_leave(device, previous);
    if (result != cudaSuccess && result != cudaErrorMemoryAllocation) {
        adapter_failed("cudaMalloc", result);
        return NULL;
    }
    if (size) {
        books_alloc(device, size, result == cudaSuccess);
    }
    return memory;
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)stream;
    adapter_begin();
    cudaError_t result = cudaFree(ptr);
    if (result != cudaSuccess) {
        adapter_failed("cudaFree", result);
    } else if (ptr) {
        books_free(device, size);
    }
}

/* It is always empty: what is held after everything was freed is a leak. */
void gmd_empty_cache(void)
{
    adapter_begin();
}

int gmd_get_stats(int device, gmd_stats *out)
{
    return books_read(device, out) ? 0 : -1;
}

void gmd_reset_peak_stats(int device)
{
    books_reset_peaks(device);
}

const char *gmd_last_error(void)
{
    return adapter_error();
}
