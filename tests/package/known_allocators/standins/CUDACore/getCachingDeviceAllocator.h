// A stand-in for the header of CMS: see README.md.
#ifndef STANDIN_CUDACORE_GETCACHINGDEVICEALLOCATOR_H
#define STANDIN_CUDACORE_GETCACHINGDEVICEALLOCATOR_H

#include <cuda_runtime_api.h>

#include <map>
#include <stdexcept>
#include <utility>

namespace cms::cuda::allocator
{
struct TotalBytes {
    size_t free = 0, live = 0, liveRequested = 0;
};

class CachingDeviceAllocator
{
  public:
    std::map<int, TotalBytes> cacheStatus() const
    {
        return status_;
    }
    void *allocate(size_t bytes, cudaStream_t)
    {
        int device = 0;
        void *memory = nullptr;
        (void)cudaGetDevice(&device);
        if (cudaMalloc(&memory, bytes) != cudaSuccess) {
            throw std::runtime_error("out of memory");
        }
        blocks_[memory] = {device, bytes};
        status_[device].live += bytes;
        status_[device].liveRequested += bytes;
        return memory;
    }
    void free(void *memory)
    {
        auto [device, bytes] = blocks_[memory];
        status_[device].live -= bytes;
        status_[device].liveRequested -= bytes;
        (void)cudaFree(memory);
    }

  private:
    std::map<int, TotalBytes> status_;
    std::map<void *, std::pair<int, size_t>> blocks_;
};

inline CachingDeviceAllocator &getCachingDeviceAllocator()
{
    static CachingDeviceAllocator only;
    return only;
}
} // namespace cms::cuda::allocator

#endif
