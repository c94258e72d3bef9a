/* throwing.cpp - an allocator that is C++: out of memory is a std::bad_alloc, and a request that is
 * too large for it a std::length_error. */
extern "C" {
#include "gmd_cuda.h"
}

#include <cstddef>
#include <new>
#include <stdexcept>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void *gmd_malloc(std::size_t size, int device, cudaStream_t stream);
EXPORT void gmd_free(void *ptr, std::size_t size, int device, cudaStream_t stream);

void *gmd_malloc(std::size_t size, int, cudaStream_t)
{
    void *memory = nullptr;
    if (size > std::size_t(1) << 30) {
        throw std::length_error("more than 1 GiB");
    }
    if (cudaMalloc(&memory, size) != cudaSuccess) {
        cudaGetLastError();
        throw std::bad_alloc();
    }
    return memory;
}

void gmd_free(void *ptr, std::size_t, int, cudaStream_t)
{
    cudaFree(ptr);
}
