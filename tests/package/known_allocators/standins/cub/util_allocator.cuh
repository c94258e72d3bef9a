// A stand-in for CUB's header: see README.md.
#ifndef STANDIN_CUB_UTIL_ALLOCATOR
#define STANDIN_CUB_UTIL_ALLOCATOR

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

namespace cub
{
struct CachingDeviceAllocator {
    struct TotalBytes {
        size_t free = 0, live = 0;
    };
    std::mutex mutex;
    std::map<int, TotalBytes> cached_bytes;
    std::map<void *, size_t> sizes;

    cudaError_t DeviceAllocate(int device, void **memory, size_t bytes, cudaStream_t)
    {
        int caller = 0;
        (void)cudaGetDevice(&caller);
        (void)cudaSetDevice(device);
        cudaError_t error = cudaMalloc(memory, bytes);
        (void)cudaSetDevice(caller);
        if (error == cudaSuccess) {
            std::lock_guard<std::mutex> lock(mutex);
            cached_bytes[device].live += bytes;
            sizes[*memory] = bytes;
        }
        return error;
    }
    cudaError_t DeviceFree(int device, void *memory)
    {
        std::lock_guard<std::mutex> lock(mutex);
        cached_bytes[device].live -= sizes[memory];
        return cudaFree(memory);
    }
    cudaError_t FreeAllCached()
    {
        return cudaSuccess;
    }
};
} // namespace cub

#endif
