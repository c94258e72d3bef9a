// pluggable.h - PyTorch's pluggable allocator as far as its virtual table matters.
#ifndef GMD_STANDIN_PLUGGABLE_H
#define GMD_STANDIN_PLUGGABLE_H

#include "c10.h"

#include <stdexcept>

namespace torch::cuda::CUDAPluggableAllocator
{

struct STANDIN_API CUDAPluggableAllocator {
    CUDAPluggableAllocator(); // here and not inline: the table is this library's
    virtual ~CUDAPluggableAllocator();
    virtual int before();
    virtual void cacheInfo(int8_t device, size_t *largest);
    virtual int after();
};

} // namespace torch::cuda::CUDAPluggableAllocator

#endif
