/* cuda_runtime.h for projects that are built where there is no CUDA toolkit: cuda_runtime_api.h,
 * and for C++ the forms that take a pointer of any type, or other arguments. */
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

template <class T>
inline cudaError_t cudaMallocFromPoolAsync(T **pointer, size_t size, cudaMemPool_t pool,
                                           cudaStream_t stream)
{
    void *memory = nullptr;
    cudaError_t error = cudaMallocFromPoolAsync(&memory, size, pool, stream);
    *pointer = static_cast<T *>(memory);
    return error;
}

template <class T>
inline cudaError_t cudaMallocManaged(T **pointer, size_t size,
                                     unsigned int flags = cudaMemAttachGlobal)
{
    void *memory = nullptr;
    cudaError_t error = cudaMallocManaged(&memory, size, flags);
    *pointer = static_cast<T *>(memory);
    return error;
}

/* Pinned memory of the host. With flags it is that of cudaHostAlloc. */
inline cudaError_t cudaMallocHost(void **pointer, size_t size, unsigned int flags)
{
    return cudaHostAlloc(pointer, size, flags);
}

template <class T>
inline cudaError_t cudaMallocHost(T **pointer, size_t size,
                                  unsigned int flags = cudaHostAllocDefault)
{
    void *memory = nullptr;
    cudaError_t error = cudaHostAlloc(&memory, size, flags);
    *pointer = static_cast<T *>(memory);
    return error;
}

template <class T> inline cudaError_t cudaHostAlloc(T **pointer, size_t size, unsigned int flags)
{
    void *memory = nullptr;
    cudaError_t error = cudaHostAlloc(&memory, size, flags);
    *pointer = static_cast<T *>(memory);
    return error;
}

inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags)
{
    return cudaEventCreateWithFlags(event, flags);
}

/* The form of CUDA 11, which CUDA 13 still takes. */
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                        cudaGraphNode_t *error_node, char *log, size_t log_size)
{
    (void)error_node;
    (void)log;
    (void)log_size;
    return cudaGraphInstantiate(exec, graph, 0);
}
#endif

#endif
