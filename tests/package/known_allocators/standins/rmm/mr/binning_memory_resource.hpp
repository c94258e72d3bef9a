// A stand-in for RMM's header: see ../../README.md.
#ifndef STANDIN_RMM_MR_BINNING_MEMORY_RESOURCE_HPP
#define STANDIN_RMM_MR_BINNING_MEMORY_RESOURCE_HPP

#include <rmm/mr/fixed_size_memory_resource.hpp>

namespace rmm::mr
{
struct binning_memory_resource : pool_memory_resource {
    explicit binning_memory_resource(pool_memory_resource upstream) : pool_memory_resource(upstream)
    {
    }
    void add_bin(std::size_t, fixed_size_memory_resource &) {}
};
} // namespace rmm::mr

#endif
