// thrust.cpp - thrust::mr::disjoint_synchronized_pool_resource over cudaMalloc behind gmd's ABI, a
// pool for each device, with its default options. The pool knows no streams: a block may be given
// back only when nobody works in it any more, so the adapter waits before it does that.
#include "waiting.hpp"

#include <thrust/mr/disjoint_sync_pool.h>
#include <thrust/mr/new.h>

#include <vector>

namespace
{
class device_memory final : public thrust::mr::memory_resource<void *>
{
  public:
    void *do_allocate(std::size_t bytes, std::size_t) override
    {
        void *memory = nullptr;
        if (cudaMalloc(&memory, bytes) != cudaSuccess) {
            (void)cudaGetLastError();
            throw std::bad_alloc();
        }
        return memory;
    }
    void do_deallocate(void *memory, std::size_t, std::size_t) override
    {
        (void)adapter::succeeded([&] { return cudaFree(memory); });
    }
};

using host_memory = thrust::mr::new_delete_resource;
using pool = thrust::mr::disjoint_synchronized_pool_resource<device_memory, host_memory>;
constexpr std::size_t alignment = 256;

device_memory upstream;
host_memory bookkeeping;
std::vector<pool *> pools; // never destroyed: the runtime may be gone when static objects are
} // namespace

extern "C" {

void gmd_init(int device_count)
{
    for (int device = 0; device < device_count; ++device) {
        pools.push_back(new pool(&upstream, &bookkeeping));
    }
}

void *gmd_malloc(size_t size, int device, cudaStream_t)
{
    void *memory = nullptr;
    adapter::device_scope scope(device);
    if (scope.is_set()) {
        (void)adapter::succeeded_without_exception(
            [&] { memory = pools[static_cast<size_t>(device)]->do_allocate(size, alignment); });
    }
    return memory;
}

void gmd_free(void *memory, size_t size, int device, cudaStream_t stream)
{
    adapter::device_scope scope(device);
    if (scope.is_set() && adapter::is_unused(memory, stream)) {
        (void)adapter::succeeded_without_exception(
            [&] { pools[static_cast<size_t>(device)]->do_deallocate(memory, size, alignment); });
    }
}
}
