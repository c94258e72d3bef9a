// cumo.cpp - the memory pool of cumo, CuPy's algorithm in C++, behind gmd's ABI. Its one source
// file is compiled in here, as cumo compiles it (NDEBUG), without Ruby (it includes ruby.h and uses
// nothing of it), and with cudaMalloc where it takes managed memory, of which the simulated device
// has none.
#ifndef NDEBUG
#define NDEBUG
#endif
#include "adapter.hpp"

#include <cuda_runtime.h> // before its name has another meaning

#define cudaMallocManaged(pointer, size, flags) cudaMalloc(pointer, size)
#include <memory_pool_impl.cpp>
#undef cudaMallocManaged

namespace
{
int devices;

// Never destroyed: the runtime may be gone when static objects are.
cumo::internal::MemoryPool &pool()
{
    static auto *only = new cumo::internal::MemoryPool;
    return *only;
}
} // namespace

extern "C" {

void gmd_init(int device_count)
{
    devices = device_count;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    std::intptr_t memory = 0;
    adapter::device_scope scope(device);
    if (scope.is_set()) {
        (void)adapter::succeeded_without_exception([&] {
            try {
                memory = pool().Malloc(size, stream);
            } catch (const cumo::internal::OutOfMemoryError &) {
                throw std::bad_alloc();
            }
        });
    }
    return reinterpret_cast<void *>(memory);
}

void gmd_free(void *memory, size_t, int device, cudaStream_t)
{
    adapter::device_scope scope(device);
    if (scope.is_set()) {
        (void)adapter::succeeded_without_exception(
            [&] { (void)pool().Free(reinterpret_cast<std::intptr_t>(memory)); });
    }
}

void gmd_empty_cache(void)
{
    for (int device = 0; device < devices; ++device) {
        adapter::device_scope scope(device);
        if (scope.is_set()) {
            (void)adapter::succeeded_without_exception([] { pool().FreeAllBlocks(); });
        }
    }
}

int gmd_get_stats(int device, gmd_stats *stats)
{
    adapter::device_scope scope(device);
    return scope.is_set() && adapter::succeeded_without_exception([&] {
               adapter::fill_in(stats, pool().GetUsedBytes(), pool().GetFreeBytes());
           })
               ? 0
               : -1;
}
}
