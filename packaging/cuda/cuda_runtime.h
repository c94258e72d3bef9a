/* cuda_runtime.h for projects that are built where there is no CUDA toolkit: cuda_runtime_api.h,
 * and for C++ the forms that take a pointer of any type. */
#ifndef GMD_CUDA_RUNTIME_H
#define GMD_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
template <class T> inline cudaError_t cudaMalloc(T **pointer, size_t size)
{
    void *memory = nullptr;
    cudaError_t error = cudaMalloc(&memory, size);
    *pointer = static_cast<T *>(memory);
    return error;
}

template <class T> inline cudaError_t cudaMallocAsync(T **pointer, size_t size, cudaStream_t stream)
{
    void *memory = nullptr;
    cudaError_t error = cudaMallocAsync(&memory, size, stream);
    *pointer = static_cast<T *>(memory);
    return error;
}
#endif

#endif
