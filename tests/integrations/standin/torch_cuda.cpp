#include "pluggable.h"

namespace torch::cuda::CUDAPluggableAllocator
{

namespace
{

[[noreturn]] void refuse(const char *what)
{
    throw std::runtime_error(std::string("does not yet support ") + what);
}

} // namespace

CUDAPluggableAllocator::CUDAPluggableAllocator() = default;

CUDAPluggableAllocator::~CUDAPluggableAllocator() = default;

void *CUDAPluggableAllocator::malloc(size_t size, int8_t device, CUstream_st *stream)
{
    void *block = alloc_fn(size, device, stream);
    books.emplace(block, size);
    return block;
}

void *CUDAPluggableAllocator::raw_alloc(size_t size)
{
    return malloc(size, 0, nullptr);
}

void (*CUDAPluggableAllocator::raw_deleter() const)(void *)
{
    return [](void *ptr) {
        auto *current = reinterpret_cast<CUDAPluggableAllocator *>(
            c10::cuda::CUDACachingAllocator::allocator.load());
        current->raw_delete(ptr);
    };
}

void CUDAPluggableAllocator::raw_delete(void *ptr)
{
    if (books.erase(ptr) == 0) {
        throw std::runtime_error("Trying to free a pointer not allocated here");
    }
    free_fn(ptr, 0, 0, nullptr);
}

int CUDAPluggableAllocator::before()
{
    return 1;
}

void CUDAPluggableAllocator::emptyCache(pool_id)
{
    refuse("emptyCache");
}

void CUDAPluggableAllocator::cacheInfo(int8_t, size_t *)
{
    refuse("cacheInfo");
}

void CUDAPluggableAllocator::releasePool(int8_t, pool_id)
{
    refuse("releasePool");
}

int CUDAPluggableAllocator::getPoolUseCount(int8_t, pool_id)
{
    refuse("getPoolUseCount");
}

void CUDAPluggableAllocator::createOrIncrefPool(int8_t, pool_id, std::shared_ptr<void>)
{
    refuse("createOrIncrefPool");
}

void CUDAPluggableAllocator::setUseOnOOM(int8_t, pool_id, bool)
{
    refuse("setUseOnOOM");
}

void CUDAPluggableAllocator::setNoSplit(int8_t, pool_id)
{
    refuse("setNoSplit");
}

bool CUDAPluggableAllocator::checkPoolLiveAllocations(int8_t, pool_id,
                                                      const std::unordered_set<void *> &)
{
    refuse("checkPoolLiveAllocations");
}

shareable CUDAPluggableAllocator::shareIpcHandle(void *)
{
    refuse("shareIpcHandle");
}

std::shared_ptr<void> CUDAPluggableAllocator::getIpcDevPtr(std::string)
{
    refuse("getIpcDevPtr");
}

int CUDAPluggableAllocator::after()
{
    return 2;
}

std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState>
CUDAPluggableAllocator::getCheckpointState(int8_t, pool_id)
{
    refuse("getCheckpointState");
}

c10::cuda::CUDACachingAllocator::CheckpointDelta CUDAPluggableAllocator::setCheckpointPoolState(
    int8_t, std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState>)
{
    refuse("setCheckpointPoolState");
}

} // namespace torch::cuda::CUDAPluggableAllocator
