/* throwing.cpp - an allocator that is C++: out of memory is a std::bad_alloc, a request that is too
 * large for it a std::length_error, and other sizes that it does not serve are strings. */
extern "C" {
#include "gmd_cuda.h"
}

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void *gmd_malloc(std::size_t size, int device, cudaStream_t stream);
EXPORT void gmd_free(void *ptr, std::size_t size, int device, cudaStream_t stream);

void *gmd_malloc(std::size_t size, int, cudaStream_t)
{
    void *memory = nullptr;
    if (size > std::size_t(1) << 30) {
        throw std::length_error("more than 1 GiB");
    }
    switch (size) {
    case 3:
        throw "three bytes are too few";
    case 5:
        throw std::string("five bytes, too");
    case 7:
        throw reinterpret_cast<const char *>(7); /* a text that is not there */
    default:
        break;
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
