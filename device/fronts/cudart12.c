/* libcudart.so.12: the forms of functions that CUDA 13 no longer has, by the names of CUDA 12. */
#include "gmd_cuda12.h"
#include "gmd_sim_front.h"

#include <string.h>

/* A function under a name that the headers of CUDA 13 declare otherwise, or not at all. */
#define OLDER(symbol, name, parameters)                                                            \
    cudaError_t name parameters __asm__(symbol);                                                   \
    cudaError_t name parameters

#define OWN(stream) ((stream) ? (stream) : cudaStreamPerThread)

/* --- structures -------------------------------------------------------------------------- */

OLDER("cudaPointerGetAttributes", pointer_attributes,
      (gmd_cuda12_pointer_attributes * attributes, const void *pointer))
{
    struct cudaPointerAttributes now;
    cudaError_t result = gmd_sim_cudaPointerGetAttributes(attributes ? &now : NULL, pointer);
    if (attributes && result == cudaSuccess) {
        *attributes = (gmd_cuda12_pointer_attributes){.type = now.type,
                                                      .device = now.device,
                                                      .devicePointer = now.devicePointer,
                                                      .hostPointer = now.hostPointer};
    }
    return result;
}

/* The clocks of an H200, in kHz, and how much slower it computes in double precision. */
enum { CLOCK_KHZ = 1980000, MEMORY_CLOCK_KHZ = 3201000, DOUBLE_PRECISION_RATIO = 2 };

static cudaError_t get_properties(gmd_cuda12_device_prop *out, int device)
{
    struct cudaDeviceProp now;
    cudaError_t result = gmd_sim_cudaGetDeviceProperties(&now, device);
    memset(out, 0, sizeof *out);
#define TAKE_OVER(field) memcpy(&out->field, &now.field, sizeof out->field);
    GMD_CUDA12_COMMON_PROPERTIES(TAKE_OVER)
#undef TAKE_OVER
    out->clockRate = CLOCK_KHZ;
    out->memoryClockRate = MEMORY_CLOCK_KHZ;
    out->singleToDoublePrecisionPerfRatio = DOUBLE_PRECISION_RATIO;
    out->deviceOverlap = 1;
    return result;
}

/* Answers with the first `bytes` of the structure. */
static cudaError_t put_properties(void *out, size_t bytes, int device)
{
    gmd_cuda12_device_prop properties;
    if (!out) {
        return gmd_sim_cudaGetDeviceProperties(NULL, device);
    }
    cudaError_t result = get_properties(&properties, device);
    if (result == cudaSuccess) {
        memcpy(out, &properties, bytes);
    }
    return result;
}

OLDER("cudaGetDeviceProperties_v2", properties_v2, (gmd_cuda12_device_prop * out, int device))
{
    return put_properties(out, sizeof *out, device);
}

OLDER("cudaGetDeviceProperties", properties_v1, (void *out, int device))
{
    return put_properties(out, GMD_CUDA11_PROPERTIES_BYTES, device);
}

/* --- places ------------------------------------------------------------------------------ */

static struct cudaMemLocation place_of(int device)
{
    return (struct cudaMemLocation){.type = device < 0 ? cudaMemLocationTypeHost
                                                       : cudaMemLocationTypeDevice,
                                    .id = device < 0 ? 0 : device};
}

OLDER("cudaMemAdvise", advise,
      (const void *pointer, size_t size, enum cudaMemoryAdvise advice, int device))
{
    return gmd_sim_cudaMemAdvise(pointer, size, advice, place_of(device));
}

OLDER("cudaMemPrefetchAsync", prefetch,
      (const void *pointer, size_t size, int device, cudaStream_t stream))
{
    return gmd_sim_cudaMemPrefetchAsync(pointer, size, place_of(device), 0, stream);
}

OLDER("cudaMemPrefetchAsync_ptsz", prefetch_own,
      (const void *pointer, size_t size, int device, cudaStream_t stream))
{
    return prefetch(pointer, size, device, OWN(stream));
}

/* --- events, captures, graphs ------------------------------------------------------------ */

OLDER("cudaEventElapsedTime_v2", elapsed_time,
      (float *milliseconds, cudaEvent_t start, cudaEvent_t end))
{
    return gmd_sim_cudaEventElapsedTime(milliseconds, start, end);
}

OLDER("cudaStreamGetCaptureInfo", capture_info,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id))
{
    return gmd_sim_cudaStreamGetCaptureInfo(stream, status, id, NULL, NULL, NULL, NULL);
}

OLDER("cudaStreamGetCaptureInfo_ptsz", capture_info_own,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id))
{
    return capture_info(OWN(stream), status, id);
}

OLDER("cudaStreamGetCaptureInfo_v2", capture_info_v2,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
       cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count))
{
    return gmd_sim_cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, NULL, count);
}

OLDER("cudaStreamGetCaptureInfo_v2_ptsz", capture_info_v2_own,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
       cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count))
{
    return capture_info_v2(OWN(stream), status, id, graph, dependencies, count);
}

OLDER("cudaStreamUpdateCaptureDependencies", update_capture,
      (cudaStream_t stream, cudaGraphNode_t *dependencies, size_t count, unsigned int flags))
{
    return gmd_sim_cudaStreamUpdateCaptureDependencies(stream, dependencies, NULL, count, flags);
}

OLDER("cudaStreamUpdateCaptureDependencies_ptsz", update_capture_own,
      (cudaStream_t stream, cudaGraphNode_t *dependencies, size_t count, unsigned int flags))
{
    return update_capture(OWN(stream), dependencies, count, flags);
}

OLDER("cudaGraphNodeGetDependencies", dependencies_of,
      (cudaGraphNode_t node, cudaGraphNode_t *dependencies, size_t *count))
{
    return gmd_sim_cudaGraphNodeGetDependencies(node, dependencies, NULL, count);
}
