// gmd_entry.cpp - device_pool behind the functions of a pluggable allocator, for `gmd gate`: a pool
// for each device. The other functions that gmd looks for, and what each lets it check, are in
// gmd_abi.h.
#include "pool.hpp"

#include <memory>
#include <vector>

namespace
{
std::vector<std::unique_ptr<device_pool>> pools;
} // namespace

extern "C" {

void gmd_init(int device_count)
{
    for (int device = static_cast<int>(pools.size()); device < device_count; ++device) {
        pools.push_back(std::make_unique<device_pool>(device));
    }
}

void *gmd_malloc(std::size_t size, int device, cudaStream_t stream)
{
    return pools[device]->allocate(size, stream);
}

void gmd_free(void *pointer, std::size_t, int device, cudaStream_t stream)
{
    pools[device]->deallocate(pointer, stream);
}

// With it gmd can ask that everything goes back to the device at the end.
void gmd_empty_cache()
{
    for (auto &pool : pools) {
        pool->trim();
    }
}
}
