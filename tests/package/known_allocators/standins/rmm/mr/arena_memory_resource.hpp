// A stand-in for RMM's header: see ../../README.md.
#ifndef STANDIN_RMM_MR_ARENA_MEMORY_RESOURCE_HPP
#define STANDIN_RMM_MR_ARENA_MEMORY_RESOURCE_HPP

#include <rmm/mr/cuda_memory_resource.hpp>

namespace rmm::mr
{
struct arena_memory_resource : cuda_memory_resource {
    explicit arena_memory_resource(cuda_memory_resource) {}
};
} // namespace rmm::mr

#endif
