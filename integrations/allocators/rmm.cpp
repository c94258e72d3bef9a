// rmm.cpp - a memory resource of RMM behind gmd's ABI, one object for each device: GMD_RMM_POOL or
// GMD_RMM_ARENA, over cudaMalloc, GMD_RMM_BINNING, over a pool, or GMD_RMM_CUDA_ASYNC. Only the
// last one can give its cache back.
#include "adapter.hpp"

#include <rmm/aligned.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>

#include <vector>

#if defined GMD_RMM_POOL

#include <rmm/mr/pool_memory_resource.hpp>
using resource = rmm::mr::pool_memory_resource;

static resource *new_resource()
{
    return new resource(rmm::mr::cuda_memory_resource{}, 0);
}

#elif defined GMD_RMM_BINNING

#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/fixed_size_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
using resource = rmm::mr::binning_memory_resource;

// Bins of 256 KiB to 4 MiB. They take 4 blocks at a time from the pool, not RMM's 128, so that they
// also run empty in short sequences.
static resource *new_resource()
{
    rmm::mr::pool_memory_resource pool(rmm::mr::cuda_memory_resource{}, 0);
    auto *bins = new resource(pool);
    for (size_t size = size_t{1} << 18; size <= size_t{1} << 22; size *= 2) {
        bins->add_bin(size, *new rmm::mr::fixed_size_memory_resource(pool, size, 4));
    }
    return bins;
}

#elif defined GMD_RMM_ARENA

#include <rmm/mr/arena_memory_resource.hpp>
using resource = rmm::mr::arena_memory_resource;

static resource *new_resource()
{
    return new resource(rmm::mr::cuda_memory_resource{});
}

#elif defined GMD_RMM_CUDA_ASYNC

#include <rmm/mr/cuda_async_memory_resource.hpp>
using resource = rmm::mr::cuda_async_memory_resource;

static resource *new_resource()
{
    return new resource;
}

#else
#error "which resource: GMD_RMM_POOL, GMD_RMM_BINNING, GMD_RMM_ARENA or GMD_RMM_CUDA_ASYNC"
#endif

// Never destroyed, nor are bins: RMM's resources may not outlive the runtime.
static std::vector<resource *> resources;

extern "C" {

void gmd_init(int device_count)
{
    for (int device = 0; device < device_count; ++device) {
        adapter::device_scope scope(device);
        resource *made = nullptr;
        (void)adapter::succeeded_without_exception([&] { made = new_resource(); });
        resources.push_back(made);
    }
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    void *memory = nullptr;
    resource *on_device = resources[static_cast<size_t>(device)];
    adapter::device_scope scope(device);
    if (on_device != nullptr && scope.is_set()) {
        (void)adapter::succeeded_without_exception([&] {
            memory = on_device->allocate(rmm::cuda_stream_view{stream}, size,
                                         rmm::CUDA_ALLOCATION_ALIGNMENT);
        });
    }
    return memory;
}

void gmd_free(void *memory, size_t size, int device, cudaStream_t stream)
{
    adapter::device_scope scope(device);
    if (scope.is_set()) {
        (void)adapter::succeeded_without_exception([&] {
            resources[static_cast<size_t>(device)]->deallocate(
                rmm::cuda_stream_view{stream}, memory, size, rmm::CUDA_ALLOCATION_ALIGNMENT);
        });
    }
}

#if defined GMD_RMM_CUDA_ASYNC
void gmd_empty_cache(void)
{
    for (resource *each : resources) {
        if (each != nullptr) {
            (void)adapter::succeeded([&] { return cudaMemPoolTrimTo(each->pool_handle(), 0); });
        }
    }
}
#endif
}
