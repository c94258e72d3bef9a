// A stand-in for RMM's header: see ../README.md.
#ifndef STANDIN_RMM_ALIGNED_HPP
#define STANDIN_RMM_ALIGNED_HPP

#include <cstddef>

namespace rmm
{
constexpr std::size_t CUDA_ALLOCATION_ALIGNMENT = 256;
} // namespace rmm

#endif
