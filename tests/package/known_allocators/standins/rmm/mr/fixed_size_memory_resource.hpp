// A stand-in for RMM's header: see ../../README.md.
#ifndef STANDIN_RMM_MR_FIXED_SIZE_MEMORY_RESOURCE_HPP
#define STANDIN_RMM_MR_FIXED_SIZE_MEMORY_RESOURCE_HPP

#include <rmm/mr/pool_memory_resource.hpp>

namespace rmm::mr
{
struct fixed_size_memory_resource : pool_memory_resource {
    fixed_size_memory_resource(pool_memory_resource upstream, std::size_t, std::size_t)
        : pool_memory_resource(upstream)
    {
    }
};
} // namespace rmm::mr

#endif
