/* cuda_runtime_api.h for projects that are built where there is no CUDA toolkit: the calls that
 * gmd's simulated libraries have (docs/cuda-calls.md), under the name that sources include. Never
 * before a toolkit's. */
#ifndef GMD_CUDA_RUNTIME_API_H
#define GMD_CUDA_RUNTIME_API_H

/* What declares device code is nothing to a compiler of host code, nvcc's own excepted. */
#ifndef __CUDACC__
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#endif
#ifndef __forceinline__
#define __forceinline__ __inline__ __attribute__((always_inline))
#endif
#define CUDARTAPI
#define CUDART_CB

#define cudaMemAttachGlobal 0x01
#define cudaMemAttachHost   0x02
#define cudaMemAttachSingle 0x04

#ifdef __cplusplus
extern "C" {
#endif
#include "../gmd_cuda.h"
#ifdef __cplusplus
/* The same functions once more, with the default arguments that C++ has. */
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr,
                                     unsigned int flags = 0);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags = 0);
cudaError_t cudaMallocManaged(void **pointer, size_t size,
                              unsigned int flags = cudaMemAttachGlobal);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t size, cudaStream_t stream = nullptr);
cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t stream = nullptr);
cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream = nullptr);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags = 0);
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status = nullptr);
}
#endif

#endif
