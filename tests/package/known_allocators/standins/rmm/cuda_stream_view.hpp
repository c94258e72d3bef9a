// A stand-in for RMM's header: see ../README.md.
#ifndef STANDIN_RMM_CUDA_STREAM_VIEW_HPP
#define STANDIN_RMM_CUDA_STREAM_VIEW_HPP

#include <cuda_runtime_api.h>

namespace rmm
{
struct cuda_stream_view {
    cudaStream_t stream;
};
} // namespace rmm

#endif
