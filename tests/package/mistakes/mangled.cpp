// mangled.cpp - an allocator in C++ whose author has forgotten extern "C".
#include <cuda_runtime_api.h>

void *gmd_malloc(size_t size, int, cudaStream_t)
{
    void *memory = nullptr;
    return cudaMalloc(&memory, size) == cudaSuccess ? memory : nullptr;
}

void gmd_free(void *ptr, size_t, int, cudaStream_t)
{
    cudaFree(ptr);
}
