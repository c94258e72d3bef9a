// A stand-in for RMM's header: see ../../README.md.
#ifndef STANDIN_RMM_MR_POOL_MEMORY_RESOURCE_HPP
#define STANDIN_RMM_MR_POOL_MEMORY_RESOURCE_HPP

#include <rmm/mr/cuda_memory_resource.hpp>

namespace rmm::mr
{
struct pool_memory_resource : cuda_memory_resource {
    pool_memory_resource(cuda_memory_resource, std::size_t) {}
};
} // namespace rmm::mr

#endif
