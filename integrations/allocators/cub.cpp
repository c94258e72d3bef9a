// cub.cpp - cub::CachingDeviceAllocator (CUB, in CCCL and in the CUDA toolkit) behind gmd's ABI,
// with its default settings: bins of 512 B to 2 MiB, of which 6 MiB are cached on each device.
#include "adapter.hpp"

#include <cub/util_allocator.cuh>

#include <mutex>

namespace
{
// Never destroyed: the runtime may be gone when static objects are.
cub::CachingDeviceAllocator &allocator()
{
    static auto *only = new cub::CachingDeviceAllocator;
    return *only;
}
} // namespace

extern "C" {

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    void *memory = nullptr;
    bool is_served = adapter::succeeded(
        [&] { return allocator().DeviceAllocate(device, &memory, size, stream); });
    return is_served ? memory : nullptr;
}

void gmd_free(void *memory, size_t, int device, cudaStream_t)
{
    (void)adapter::succeeded([&] { return allocator().DeviceFree(device, memory); });
}

void gmd_empty_cache(void)
{
    (void)adapter::succeeded([] { return allocator().FreeAllCached(); });
}

int gmd_get_stats(int device, gmd_stats *stats)
{
    std::lock_guard<std::mutex> lock(allocator().mutex);
    const auto &bytes = allocator().cached_bytes[device];
    adapter::fill_in(stats, bytes.live, bytes.free);
    return 0;
}
}
