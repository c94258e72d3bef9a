// A stand-in for RMM's header: see ../../README.md.
#ifndef STANDIN_RMM_MR_CUDA_ASYNC_MEMORY_RESOURCE_HPP
#define STANDIN_RMM_MR_CUDA_ASYNC_MEMORY_RESOURCE_HPP

#include <rmm/cuda_stream_view.hpp>

#include <new>

namespace rmm::mr
{
class cuda_async_memory_resource
{
  public:
    cuda_async_memory_resource()
    {
        int device = 0;
        (void)cudaGetDevice(&device);
        (void)cudaDeviceGetDefaultMemPool(&pool_, device);
    }
    void *allocate(cuda_stream_view view, std::size_t bytes, std::size_t)
    {
        void *memory = nullptr;
        if (cudaMallocFromPoolAsync(&memory, bytes, pool_, view.stream) != cudaSuccess) {
            throw std::bad_alloc();
        }
        return memory;
    }
    void deallocate(cuda_stream_view view, void *memory, std::size_t, std::size_t) noexcept
    {
        (void)cudaFreeAsync(memory, view.stream);
    }
    cudaMemPool_t pool_handle() const
    {
        return pool_;
    }

  private:
    cudaMemPool_t pool_ = nullptr;
};
} // namespace rmm::mr

#endif
