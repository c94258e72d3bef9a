#include "pluggable.h"

namespace torch::cuda::CUDAPluggableAllocator
{

CUDAPluggableAllocator::CUDAPluggableAllocator() = default;

CUDAPluggableAllocator::~CUDAPluggableAllocator() = default;

int CUDAPluggableAllocator::before()
{
    return 1;
}

void CUDAPluggableAllocator::cacheInfo(int8_t, size_t *)
{
    throw std::runtime_error("does not yet support cacheInfo");
}

int CUDAPluggableAllocator::after()
{
    return 2;
}

} // namespace torch::cuda::CUDAPluggableAllocator
