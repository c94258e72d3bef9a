/* gmd_cuda_lists.h - the one list of the CUDA functions, errors and attributes that gmd declares,
 * calls and simulates.
 *
 * Functions are X(result, name, (parameters), (arguments)). Declarations (gmd_cuda.h), the loader's
 * table (gmd_runtime.h), the simulator's call counters and faults (sim/calls.h), the three fronts
 * and the test against a CUDA toolkit are all made from it: a function is added here and
 * implemented in sim/. Signatures are those of CUDA 13. */
#ifndef GMD_CUDA_LISTS_H
#define GMD_CUDA_LISTS_H

#include "gmd_cuda_driver_lists.h"
#include "gmd_cuda_values.h"

/* Runtime functions that answer with a status. */
#define GMD_CUDART_FUNCTIONS(X)                                                                    \
    X(cudaError_t, cudaMalloc, (void **pointer, size_t size), (pointer, size))                     \
    X(cudaError_t, cudaFree, (void *pointer), (pointer))                                           \
    X(cudaError_t, cudaMemGetInfo, (size_t * free_bytes, size_t * total_bytes),                    \
      (free_bytes, total_bytes))                                                                   \
    X(cudaError_t, cudaPointerGetAttributes,                                                       \
      (struct cudaPointerAttributes * attributes, const void *pointer), (attributes, pointer))     \
    X(cudaError_t, cudaMallocHost, (void **pointer, size_t size), (pointer, size))                 \
    X(cudaError_t, cudaHostAlloc, (void **pointer, size_t size, unsigned int flags),               \
      (pointer, size, flags))                                                                      \
    X(cudaError_t, cudaFreeHost, (void *pointer), (pointer))                                       \
    X(cudaError_t, cudaGetDevice, (int *device), (device))                                         \
    X(cudaError_t, cudaSetDevice, (int device), (device))                                          \
    X(cudaError_t, cudaGetDeviceCount, (int *count), (count))                                      \
    X(cudaError_t, cudaDeviceSynchronize, (void), ())                                              \
    X(cudaError_t, cudaDeviceReset, (void), ())                                                    \
    X(cudaError_t, cudaDeviceGetAttribute,                                                         \
      (int *value, enum cudaDeviceAttr attribute, int device), (value, attribute, device))         \
    X(cudaError_t, cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),                  \
      (least, greatest))                                                                           \
    X(cudaError_t, cudaRuntimeGetVersion, (int *version), (version))                               \
    X(cudaError_t, cudaDriverGetVersion, (int *version), (version))                                \
    X(cudaError_t, cudaGetLastError, (void), ())                                                   \
    X(cudaError_t, cudaPeekAtLastError, (void), ())                                                \
    X(cudaError_t, cudaStreamCreate, (cudaStream_t * stream), (stream))                            \
    X(cudaError_t, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags),         \
      (stream, flags))                                                                             \
    X(cudaError_t, cudaStreamCreateWithPriority,                                                   \
      (cudaStream_t * stream, unsigned int flags, int priority), (stream, flags, priority))        \
    X(cudaError_t, cudaStreamGetFlags, (cudaStream_t stream, unsigned int *flags),                 \
      (stream, flags))                                                                             \
    X(cudaError_t, cudaStreamGetPriority, (cudaStream_t stream, int *priority),                    \
      (stream, priority))                                                                          \
    X(cudaError_t, cudaStreamDestroy, (cudaStream_t stream), (stream))                             \
    X(cudaError_t, cudaStreamQuery, (cudaStream_t stream), (stream))                               \
    X(cudaError_t, cudaStreamSynchronize, (cudaStream_t stream), (stream))                         \
    X(cudaError_t, cudaStreamWaitEvent,                                                            \
      (cudaStream_t stream, cudaEvent_t event, unsigned int flags), (stream, event, flags))        \
    X(cudaError_t, cudaEventCreate, (cudaEvent_t * event), (event))                                \
    X(cudaError_t, cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags),            \
      (event, flags))                                                                              \
    X(cudaError_t, cudaEventDestroy, (cudaEvent_t event), (event))                                 \
    X(cudaError_t, cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))     \
    X(cudaError_t, cudaEventRecordWithFlags,                                                       \
      (cudaEvent_t event, cudaStream_t stream, unsigned int flags), (event, stream, flags))        \
    X(cudaError_t, cudaEventQuery, (cudaEvent_t event), (event))                                   \
    X(cudaError_t, cudaEventSynchronize, (cudaEvent_t event), (event))                             \
    X(cudaError_t, cudaEventElapsedTime,                                                           \
      (float *milliseconds, cudaEvent_t start, cudaEvent_t end), (milliseconds, start, end))       \
    X(cudaError_t, cudaMemset, (void *pointer, int value, size_t size), (pointer, value, size))    \
    X(cudaError_t, cudaMemsetAsync, (void *pointer, int value, size_t size, cudaStream_t stream),  \
      (pointer, value, size, stream))                                                              \
    X(cudaError_t, cudaMemcpy,                                                                     \
      (void *to, const void *from, size_t size, enum cudaMemcpyKind kind), (to, from, size, kind)) \
    X(cudaError_t, cudaMemcpyAsync,                                                                \
      (void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream),    \
      (to, from, size, kind, stream))

/* Likewise functions that allocators call and gmd itself does not: the loader does not ask a real
 * library for them, so that an older one serves. */
#define GMD_CUDART_FURTHER_FUNCTIONS(X)                                                            \
    X(cudaError_t, cudaGetDeviceProperties, (struct cudaDeviceProp * properties, int device),      \
      (properties, device))                                                                        \
    X(cudaError_t, cudaDeviceCanAccessPeer, (int *answer, int device, int peer),                   \
      (answer, device, peer))                                                                      \
    X(cudaError_t, cudaDeviceEnablePeerAccess, (int peer, unsigned int flags), (peer, flags))      \
    X(cudaError_t, cudaDeviceDisablePeerAccess, (int peer), (peer))                                \
    X(cudaError_t, cudaMemcpyPeerAsync,                                                            \
      (void *to, int to_device, const void *from, int from_device, size_t size,                    \
       cudaStream_t stream),                                                                       \
      (to, to_device, from, from_device, size, stream))                                            \
    X(cudaError_t, cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *pointer),              \
      (handle, pointer))                                                                           \
    X(cudaError_t, cudaIpcOpenMemHandle,                                                           \
      (void **pointer, cudaIpcMemHandle_t handle, unsigned int flags), (pointer, handle, flags))   \
    X(cudaError_t, cudaIpcCloseMemHandle, (void *pointer), (pointer))                              \
    X(cudaError_t, cudaStreamIsCapturing,                                                          \
      (cudaStream_t stream, enum cudaStreamCaptureStatus * status), (stream, status))              \
    X(cudaError_t, cudaStreamGetCaptureInfo,                                                       \
      (cudaStream_t stream, enum cudaStreamCaptureStatus * status, unsigned long long *id,         \
       cudaGraph_t *graph, const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,  \
       size_t *dependency_count),                                                                  \
      (stream, status, id, graph, dependencies, edges, dependency_count))                          \
    X(cudaError_t, cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode),       \
      (mode))                                                                                      \
    X(cudaError_t, cudaGraphNodeGetDependencies,                                                   \
      (cudaGraphNode_t node, cudaGraphNode_t * dependencies, cudaGraphEdgeData * edges,            \
       size_t * count),                                                                            \
      (node, dependencies, edges, count))                                                          \
    X(cudaError_t, cudaGetDriverEntryPoint,                                                        \
      (const char *symbol, void **function, unsigned long long flags,                              \
       enum cudaDriverEntryPointQueryResult *status),                                              \
      (symbol, function, flags, status))                                                           \
    X(cudaError_t, cudaGetDriverEntryPointByVersion,                                               \
      (const char *symbol, void **function, unsigned int version, unsigned long long flags,        \
       enum cudaDriverEntryPointQueryResult *status),                                              \
      (symbol, function, version, flags, status))                                                  \
    X(cudaError_t, cudaHostRegister, (void *pointer, size_t size, unsigned int flags),             \
      (pointer, size, flags))                                                                      \
    X(cudaError_t, cudaHostUnregister, (void *pointer), (pointer))                                 \
    X(cudaError_t, cudaHostGetDevicePointer, (void **out, void *pointer, unsigned int flags),      \
      (out, pointer, flags))                                                                       \
    X(cudaError_t, cudaHostGetFlags, (unsigned int *flags, void *pointer), (flags, pointer))       \
    X(cudaError_t, cudaMallocPitch, (void **pointer, size_t *pitch, size_t width, size_t height),  \
      (pointer, pitch, width, height))                                                             \
    X(cudaError_t, cudaMalloc3D, (struct cudaPitchedPtr * pointer, struct cudaExtent extent),      \
      (pointer, extent))                                                                           \
    X(cudaError_t, cudaMemcpy3D, (const struct cudaMemcpy3DParms *copy), (copy))                   \
    X(cudaError_t, cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *copy, cudaStream_t stream), \
      (copy, stream))                                                                              \
    X(cudaError_t, cudaMallocManaged, (void **pointer, size_t size, unsigned int flags),           \
      (pointer, size, flags))                                                                      \
    X(cudaError_t, cudaMemAdvise,                                                                  \
      (const void *pointer, size_t size, enum cudaMemoryAdvise advice,                             \
       struct cudaMemLocation location),                                                           \
      (pointer, size, advice, location))                                                           \
    X(cudaError_t, cudaMemPrefetchAsync,                                                           \
      (const void *pointer, size_t size, struct cudaMemLocation location, unsigned int flags,      \
       cudaStream_t stream),                                                                       \
      (pointer, size, location, flags, stream))                                                    \
    X(cudaError_t, cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event),      \
      (handle, event))                                                                             \
    X(cudaError_t, cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle),     \
      (event, handle))                                                                             \
    X(cudaError_t, cudaMemPoolExportToShareableHandle,                                             \
      (void *shareable, cudaMemPool_t pool, enum cudaMemAllocationHandleType type,                 \
       unsigned int flags),                                                                        \
      (shareable, pool, type, flags))                                                              \
    X(cudaError_t, cudaMemPoolImportFromShareableHandle,                                           \
      (cudaMemPool_t * pool, void *shareable, enum cudaMemAllocationHandleType type,               \
       unsigned int flags),                                                                        \
      (pool, shareable, type, flags))                                                              \
    X(cudaError_t, cudaSetDeviceFlags, (unsigned int flags), (flags))                              \
    X(cudaError_t, cudaGetDeviceFlags, (unsigned int *flags), (flags))                             \
    X(cudaError_t, cudaDeviceGetPCIBusId, (char *text, int length, int device),                    \
      (text, length, device))                                                                      \
    X(cudaError_t, cudaDeviceGetByPCIBusId, (int *device, const char *text), (device, text))       \
    X(cudaError_t, cudaDeviceGetLimit, (size_t * value, enum cudaLimit which), (value, which))     \
    X(cudaError_t, cudaDeviceSetLimit, (enum cudaLimit which, size_t value), (which, value))       \
    X(cudaError_t, cudaDeviceGetP2PAttribute,                                                      \
      (int *value, enum cudaDeviceP2PAttr which, int from, int to), (value, which, from, to))      \
    X(cudaError_t, cudaMallocAsync, (void **pointer, size_t size, cudaStream_t stream),            \
      (pointer, size, stream))                                                                     \
    X(cudaError_t, cudaFreeAsync, (void *pointer, cudaStream_t stream), (pointer, stream))         \
    X(cudaError_t, cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device),                \
      (pool, device))                                                                              \
    X(cudaError_t, cudaMemPoolGetAttribute,                                                        \
      (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value), (pool, attribute, value)) \
    X(cudaError_t, cudaMemPoolSetAttribute,                                                        \
      (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value), (pool, attribute, value)) \
    X(cudaError_t, cudaMemPoolSetAccess,                                                           \
      (cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t count),                  \
      (pool, access, count))                                                                       \
    X(cudaError_t, cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep_bytes), (pool, keep_bytes)) \
    X(cudaError_t, cudaMallocFromPoolAsync,                                                        \
      (void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream),                      \
      (pointer, size, pool, stream))                                                               \
    X(cudaError_t, cudaMemPoolCreate,                                                              \
      (cudaMemPool_t * pool, const struct cudaMemPoolProps *properties), (pool, properties))       \
    X(cudaError_t, cudaMemPoolDestroy, (cudaMemPool_t pool), (pool))                               \
    X(cudaError_t, cudaMemPoolGetAccess,                                                           \
      (enum cudaMemAccessFlags * flags, cudaMemPool_t pool, struct cudaMemLocation * location),    \
      (flags, pool, location))                                                                     \
    X(cudaError_t, cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device), (pool, device))       \
    X(cudaError_t, cudaMemGetDefaultMemPool,                                                       \
      (cudaMemPool_t * pool, struct cudaMemLocation * location, enum cudaMemAllocationType type),  \
      (pool, location, type))                                                                      \
    X(cudaError_t, cudaDeviceSetMemPool, (int device, cudaMemPool_t pool), (device, pool))         \
    GMD_CUDART_STREAM_FUNCTIONS(X)

/* Those on streams, host functions, copies, captures and graphs; part of the list above. */
#define GMD_CUDART_STREAM_FUNCTIONS(X)                                                             \
    X(cudaError_t, cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), (stream, id))   \
    X(cudaError_t, cudaStreamGetDevice, (cudaStream_t stream, int *device), (stream, device))      \
    X(cudaError_t, cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from), (to, from))     \
    X(cudaError_t, cudaStreamAttachMemAsync,                                                       \
      (cudaStream_t stream, void *pointer, size_t size, unsigned int flags),                       \
      (stream, pointer, size, flags))                                                              \
    X(cudaError_t, cudaStreamAddCallback,                                                          \
      (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags),        \
      (stream, callback, data, flags))                                                             \
    X(cudaError_t, cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),   \
      (stream, function, data))                                                                    \
    X(cudaError_t, cudaMemcpyPeer,                                                                 \
      (void *to, int to_device, const void *from, int from_device, size_t size),                   \
      (to, to_device, from, from_device, size))                                                    \
    X(cudaError_t, cudaMemcpy2D,                                                                   \
      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,               \
       size_t height, enum cudaMemcpyKind kind),                                                   \
      (to, to_pitch, from, from_pitch, width, height, kind))                                       \
    X(cudaError_t, cudaMemcpy2DAsync,                                                              \
      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,               \
       size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),                              \
      (to, to_pitch, from, from_pitch, width, height, kind, stream))                               \
    X(cudaError_t, cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height), \
      (to, pitch, value, width, height))                                                           \
    X(cudaError_t, cudaMemset2DAsync,                                                              \
      (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),       \
      (to, pitch, value, width, height, stream))                                                   \
    X(cudaError_t, cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode), \
      (stream, mode))                                                                              \
    X(cudaError_t, cudaStreamBeginCaptureToGraph,                                                  \
      (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,                \
       const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode),             \
      (stream, graph, dependencies, edges, count, mode))                                           \
    X(cudaError_t, cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t * graph),               \
      (stream, graph))                                                                             \
    X(cudaError_t, cudaStreamUpdateCaptureDependencies,                                            \
      (cudaStream_t stream, cudaGraphNode_t * dependencies, const cudaGraphEdgeData *edges,        \
       size_t count, unsigned int flags),                                                          \
      (stream, dependencies, edges, count, flags))                                                 \
    X(cudaError_t, cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags), (graph, flags))     \
    X(cudaError_t, cudaGraphDestroy, (cudaGraph_t graph), (graph))                                 \
    X(cudaError_t, cudaGraphGetNodes,                                                              \
      (cudaGraph_t graph, cudaGraphNode_t * nodes, size_t * count), (graph, nodes, count))         \
    X(cudaError_t, cudaGraphGetRootNodes,                                                          \
      (cudaGraph_t graph, cudaGraphNode_t * nodes, size_t * count), (graph, nodes, count))         \
    X(cudaError_t, cudaGraphNodeGetType, (cudaGraphNode_t node, enum cudaGraphNodeType * type),    \
      (node, type))                                                                                \
    X(cudaError_t, cudaGraphDebugDotPrint,                                                         \
      (cudaGraph_t graph, const char *path, unsigned int flags), (graph, path, flags))             \
    X(cudaError_t, cudaGraphInstantiate,                                                           \
      (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags), (exec, graph, flags)) \
    X(cudaError_t, cudaGraphInstantiateWithFlags,                                                  \
      (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags), (exec, graph, flags)) \
    X(cudaError_t, cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))   \
    X(cudaError_t, cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))   \
    X(cudaError_t, cudaGraphExecDestroy, (cudaGraphExec_t exec), (exec))

/* Functions with a variant for code that is compiled with per-thread default streams, which
 * libcudart exports beside them: X(result, name, suffix, (parameters), (arguments)), where OWN()
 * makes the calling thread's default stream of NULL. */
#define GMD_CUDART_PER_THREAD_FUNCTIONS(X)                                                         \
    X(cudaError_t, cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned int *flags),          \
      (OWN(stream), flags))                                                                        \
    X(cudaError_t, cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority),             \
      (OWN(stream), priority))                                                                     \
    X(cudaError_t, cudaStreamQuery, _ptsz, (cudaStream_t stream), (OWN(stream)))                   \
    X(cudaError_t, cudaStreamSynchronize, _ptsz, (cudaStream_t stream), (OWN(stream)))             \
    X(cudaError_t, cudaStreamWaitEvent, _ptsz,                                                     \
      (cudaStream_t stream, cudaEvent_t event, unsigned int flags), (OWN(stream), event, flags))   \
    X(cudaError_t, cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream),               \
      (event, OWN(stream)))                                                                        \
    X(cudaError_t, cudaEventRecordWithFlags, _ptsz,                                                \
      (cudaEvent_t event, cudaStream_t stream, unsigned int flags), (event, OWN(stream), flags))   \
    X(cudaError_t, cudaMemsetAsync, _ptsz,                                                         \
      (void *pointer, int value, size_t size, cudaStream_t stream),                                \
      (pointer, value, size, OWN(stream)))                                                         \
    X(cudaError_t, cudaMemcpyAsync, _ptsz,                                                         \
      (void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream),    \
      (to, from, size, kind, OWN(stream)))                                                         \
    X(cudaError_t, cudaMallocAsync, _ptsz, (void **pointer, size_t size, cudaStream_t stream),     \
      (pointer, size, OWN(stream)))                                                                \
    X(cudaError_t, cudaFreeAsync, _ptsz, (void *pointer, cudaStream_t stream),                     \
      (pointer, OWN(stream)))                                                                      \
    X(cudaError_t, cudaMallocFromPoolAsync, _ptsz,                                                 \
      (void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream),                      \
      (pointer, size, pool, OWN(stream)))                                                          \
    X(cudaError_t, cudaMemPrefetchAsync, _ptsz,                                                    \
      (const void *pointer, size_t size, struct cudaMemLocation location, unsigned int flags,      \
       cudaStream_t stream),                                                                       \
      (pointer, size, location, flags, OWN(stream)))                                               \
    X(cudaError_t, cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long *id),          \
      (OWN(stream), id))                                                                           \
    X(cudaError_t, cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int *device),                 \
      (OWN(stream), device))                                                                       \
    X(cudaError_t, cudaStreamCopyAttributes, _ptsz, (cudaStream_t to, cudaStream_t from),          \
      (OWN(to), OWN(from)))                                                                        \
    X(cudaError_t, cudaStreamAttachMemAsync, _ptsz,                                                \
      (cudaStream_t stream, void *pointer, size_t size, unsigned int flags),                       \
      (OWN(stream), pointer, size, flags))                                                         \
    X(cudaError_t, cudaStreamAddCallback, _ptsz,                                                   \
      (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags),        \
      (OWN(stream), callback, data, flags))                                                        \
    X(cudaError_t, cudaLaunchHostFunc, _ptsz,                                                      \
      (cudaStream_t stream, cudaHostFn_t function, void *data), (OWN(stream), function, data))     \
    X(cudaError_t, cudaMemcpy2DAsync, _ptsz,                                                       \
      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,               \
       size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),                              \
      (to, to_pitch, from, from_pitch, width, height, kind, OWN(stream)))                          \
    X(cudaError_t, cudaMemset2DAsync, _ptsz,                                                       \
      (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),       \
      (to, pitch, value, width, height, OWN(stream)))                                              \
    X(cudaError_t, cudaStreamBeginCapture, _ptsz,                                                  \
      (cudaStream_t stream, enum cudaStreamCaptureMode mode), (OWN(stream), mode))                 \
    X(cudaError_t, cudaStreamBeginCaptureToGraph, _ptsz,                                           \
      (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,                \
       const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode),             \
      (OWN(stream), graph, dependencies, edges, count, mode))                                      \
    X(cudaError_t, cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t * graph),        \
      (OWN(stream), graph))                                                                        \
    X(cudaError_t, cudaStreamIsCapturing, _ptsz,                                                   \
      (cudaStream_t stream, enum cudaStreamCaptureStatus * status), (OWN(stream), status))         \
    X(cudaError_t, cudaStreamGetCaptureInfo, _ptsz,                                                \
      (cudaStream_t stream, enum cudaStreamCaptureStatus * status, unsigned long long *id,         \
       cudaGraph_t *graph, const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,  \
       size_t *count),                                                                             \
      (OWN(stream), status, id, graph, dependencies, edges, count))                                \
    X(cudaError_t, cudaStreamUpdateCaptureDependencies, _ptsz,                                     \
      (cudaStream_t stream, cudaGraphNode_t * dependencies, const cudaGraphEdgeData *edges,        \
       size_t count, unsigned int flags),                                                          \
      (OWN(stream), dependencies, edges, count, flags))                                            \
    X(cudaError_t, cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),            \
      (exec, OWN(stream)))                                                                         \
    X(cudaError_t, cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),            \
      (exec, OWN(stream)))

/* Runtime functions that cannot fail. */
#define GMD_CUDART_TEXT_FUNCTIONS(X)                                                               \
    X(const char *, cudaGetErrorName, (cudaError_t error), (error))                                \
    X(const char *, cudaGetErrorString, (cudaError_t error), (error))

#endif
