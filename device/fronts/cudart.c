/* libcudart.so.13 and libcudart.so.12: names only; the runtime is in libgmd_sim.so. */
#include "gmd_sim_front.h"

#define FORWARD(result, name, parameters, arguments)                                               \
    result name parameters                                                                         \
    {                                                                                              \
        return gmd_sim_##name arguments;                                                           \
    }

/* The one function that tells the two libraries apart. */
#define gmd_sim_cudaRuntimeGetVersion(version) gmd_sim_runtime_version(version, FRONT_VERSION)

/* CUDA 12 has the present forms of these under other names, and of two of them none: those stay
 * inside the library. Its own forms are in cudart12.c. */
#if FRONT_VERSION < 13000
#define cudaMemAdvise                            cudaMemAdvise_v2
#define cudaMemPrefetchAsync                     cudaMemPrefetchAsync_v2
#define cudaMemPrefetchAsync_ptsz                cudaMemPrefetchAsync_v2_ptsz
#define cudaStreamGetCaptureInfo                 cudaStreamGetCaptureInfo_v3
#define cudaStreamGetCaptureInfo_ptsz            cudaStreamGetCaptureInfo_v3_ptsz
#define cudaStreamUpdateCaptureDependencies      cudaStreamUpdateCaptureDependencies_v2
#define cudaStreamUpdateCaptureDependencies_ptsz cudaStreamUpdateCaptureDependencies_v2_ptsz
#define cudaGraphNodeGetDependencies             cudaGraphNodeGetDependencies_v2
#define cudaGetDeviceProperties                  front_properties_of_13
#define cudaPointerGetAttributes                 front_attributes_of_13
#endif

#define DECLARE(result, name, parameters, arguments) result name parameters;
GMD_CUDART_FUNCTIONS(DECLARE)
GMD_CUDART_FURTHER_FUNCTIONS(DECLARE)
GMD_CUDART_FUNCTIONS(FORWARD)
GMD_CUDART_FURTHER_FUNCTIONS(FORWARD)
GMD_CUDART_TEXT_FUNCTIONS(FORWARD)

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
