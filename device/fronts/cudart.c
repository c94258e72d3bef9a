/* libcudart.so.13 and libcudart.so.12: names only; the runtime is in libgmd_sim.so. */
#include "front.h"

#define FORWARD(result, name, parameters, arguments)                                               \
    result name parameters                                                                         \
    {                                                                                              \
        return gmd_sim_##name arguments;                                                           \
    }

/* The one function that tells the two libraries apart. */
#define gmd_sim_cudaRuntimeGetVersion(version) gmd_sim_runtime_version(version, FRONT_VERSION)

/* Three functions had other parameters before CUDA 13, and their present ones under other names. */
#if FRONT_VERSION < 13000
#define cudaStreamGetCaptureInfo            cudaStreamGetCaptureInfo_v3
#define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
#define cudaGraphNodeGetDependencies        cudaGraphNodeGetDependencies_v2
#endif

#define DECLARE(result, name, parameters, arguments) result name parameters;
GMD_CUDART_FURTHER_FUNCTIONS(DECLARE)
GMD_CUDART_FUNCTIONS(FORWARD)
GMD_CUDART_FURTHER_FUNCTIONS(FORWARD)
GMD_CUDART_TEXT_FUNCTIONS(FORWARD)

#if FRONT_VERSION < 13000
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies, size_t *count);
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies, size_t *count)
{
    return gmd_sim_cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, NULL, count);
}

cudaError_t front_capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                               unsigned long long *id) __asm__("cudaStreamGetCaptureInfo");
cudaError_t front_capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                               unsigned long long *id)
{
    return gmd_sim_cudaStreamGetCaptureInfo(stream, status, id, NULL, NULL, NULL, NULL);
}

cudaError_t front_update_capture(cudaStream_t stream, cudaGraphNode_t *dependencies, size_t count,
                                 unsigned int flags) __asm__("cudaStreamUpdateCaptureDependencies");
cudaError_t front_update_capture(cudaStream_t stream, cudaGraphNode_t *dependencies, size_t count,
                                 unsigned int flags)
{
    return gmd_sim_cudaStreamUpdateCaptureDependencies(stream, dependencies, NULL, count, flags);
}

cudaError_t front_dependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                               size_t *count) __asm__("cudaGraphNodeGetDependencies");
cudaError_t front_dependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies, size_t *count)
{
    return gmd_sim_cudaGraphNodeGetDependencies(node, dependencies, NULL, count);
}
#endif

/* --- for code compiled with --default-stream per-thread ---------------------------------- */

#define OWN(stream) ((stream) ? (stream) : cudaStreamPerThread)
#define FORWARD_OWN(result, name, suffix, parameters, arguments)                                   \
    result name##suffix parameters;                                                                \
    result name##suffix parameters                                                                 \
    {                                                                                              \
        return gmd_sim_##name arguments;                                                           \
    }

GMD_CUDART_PER_THREAD_FUNCTIONS(FORWARD_OWN)

cudaError_t cudaMemset_ptds(void *to, int value, size_t size);
cudaError_t cudaMemset_ptds(void *to, int value, size_t size)
{
    return gmd_sim_memset_on(cudaStreamPerThread, to, value, size);
}

cudaError_t cudaMemcpy_ptds(void *to, const void *from, size_t size, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy_ptds(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    return gmd_sim_memcpy_on(cudaStreamPerThread, to, from, size, kind);
}
