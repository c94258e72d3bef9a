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

} // namespace torch::cuda::CUDAPluggableAllocator
