// cms.cpp - GenericCachingAllocator of CMS (the class of HeterogeneousCore/CUDACore, in the sources
// of pixeltrack-standalone) behind gmd's ABI, with the settings that these come with: bins of 256 B
// to 1 GiB, of which four fifths of the device's memory are cached. Larger requests are refused by
// its contract. It has no function that empties its cache.
#include "adapter.hpp"

#include <limits>

// Its errors print a stack, which would need libbacktrace.
#define BOOST_STACKTRACE_USE_NOOP
#include <CUDACore/getCachingDeviceAllocator.h>

extern "C" {

// Makes the allocator, which asks each device for its memory.
void gmd_init(int)
{
    (void)adapter::succeeded_without_exception(
        [] { (void)cms::cuda::allocator::getCachingDeviceAllocator(); });
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    namespace cms_allocator = cms::cuda::allocator;
    void *memory = nullptr;
    adapter::device_scope scope(device);
    if (scope.is_set()) {
        (void)adapter::succeeded_without_exception(
            [&] { memory = cms_allocator::getCachingDeviceAllocator().allocate(size, stream); });
    }
    return memory;
}

void gmd_free(void *memory, size_t, int device, cudaStream_t)
{
    namespace cms_allocator = cms::cuda::allocator;
    adapter::device_scope scope(device);
    if (scope.is_set()) {
        (void)adapter::succeeded_without_exception(
            [&] { cms_allocator::getCachingDeviceAllocator().free(memory); });
    }
}

int gmd_get_stats(int device, gmd_stats *stats)
{
    auto bytes = cms::cuda::allocator::getCachingDeviceAllocator().cacheStatus()[device];
    adapter::fill_in(stats, bytes.live, bytes.free);
    stats->requested_bytes = bytes.liveRequested;
    return 0;
}
}
