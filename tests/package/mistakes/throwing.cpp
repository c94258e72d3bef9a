// throwing.cpp - an allocator that throws where it is out of memory.
#include <cuda_runtime_api.h>
#include <new>

extern "C" void *gmd_malloc(size_t size, int, cudaStream_t)
{
    void *memory = nullptr;
    if (cudaMalloc(&memory, size) != cudaSuccess) {
        cudaGetLastError();
        throw std::bad_alloc();
    }
    return memory;
}

extern "C" void gmd_free(void *ptr, size_t, int, cudaStream_t)
{
    cudaFree(ptr);
}
