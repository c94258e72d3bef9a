#include "torch_uncached.h"

#include "torch_symbols.h"

extern "C" {
#include "gmd_cuda.h"
}

#include <atomic>
#include <mutex>
#include <unordered_set>

namespace
{

std::atomic<bool> is_off;

struct {
    std::mutex lock;
    std::unordered_set<void *> all;
    std::atomic<size_t> count{0}; // for those who need not look
} blocks;

} // namespace

bool caching_is_off()
{
    return is_off.load(std::memory_order_relaxed);
}

void *allocate_uncached(size_t size)
{
    void *block = nullptr;
    if (cudaMalloc(&block, size) != cudaSuccess) {
        cudaGetLastError();
        return nullptr;
    }
    const std::lock_guard<std::mutex> hold(blocks.lock);
    blocks.all.insert(block);
    blocks.count++;
    return block;
}

bool free_uncached(void *block)
{
    if (blocks.count.load(std::memory_order_relaxed) == 0) {
        return false;
    }
    {
        const std::lock_guard<std::mutex> hold(blocks.lock);
        if (blocks.all.erase(block) == 0) {
            return false;
        }
        blocks.count--;
    }
    if (cudaFree(block) !=
        cudaSuccess) { // it waits for the device: a fault of the program's shows here
        cudaGetLastError();
        std::fprintf(stderr, "gmd_allocator: CUDA did not take %p back\n", block);
    }
    return true;
}

// --- what the helper calls -----------------------------------------------------------------------

TORCH_EXPORT void gmd_torch_enable_caching(int is_on)
{
    is_off.store(!is_on);
}
