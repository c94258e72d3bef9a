// A stand-in for RMM's header: see ../../README.md.
#ifndef STANDIN_RMM_MR_CUDA_MEMORY_RESOURCE_HPP
#define STANDIN_RMM_MR_CUDA_MEMORY_RESOURCE_HPP

#include <rmm/cuda_stream_view.hpp>

#include <new>

namespace rmm::mr
{
struct cuda_memory_resource {
    void *allocate(cuda_stream_view, std::size_t bytes, std::size_t)
    {
        void *memory = nullptr;
        if (cudaMalloc(&memory, bytes) != cudaSuccess) {
            throw std::bad_alloc();
        }
        return memory;
    }
    void deallocate(cuda_stream_view, void *memory, std::size_t, std::size_t) noexcept
    {
        (void)cudaFree(memory);
    }
};
} // namespace rmm::mr

#endif
