/* gmd_cuda_lists.h - the one list of the CUDA functions, errors and attributes that gmd declares,
 * calls and simulates.
 *
 * Functions are X(result, name, (parameters), (arguments)). Declarations (gmd_cuda.h), the loader's
 * table (gmd_runtime.h), the simulator's call counters and faults (sim/calls.h), the three fronts
 * and the test against a CUDA toolkit are all made from it: a function is added here and
 * implemented in sim/. Signatures are those of CUDA 13. */
#ifndef GMD_CUDA_LISTS_H
#define GMD_CUDA_LISTS_H

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

/* Driver functions, under the names that the library exports. */
#define GMD_CUDA_DRIVER_FUNCTIONS(X)                                                               \
    X(CUresult, cuInit, (unsigned int flags), (flags))                                             \
    X(CUresult, cuDriverGetVersion, (int *version), (version))                                     \
    X(CUresult, cuDeviceGet, (CUdevice * device, int ordinal), (device, ordinal))                  \
    X(CUresult, cuDeviceGetCount, (int *count), (count))                                           \
    X(CUresult, cuDeviceGetName, (char *name, int length, CUdevice device),                        \
      (name, length, device))                                                                      \
    X(CUresult, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device), (bytes, device))           \
    X(CUresult, cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device), \
      (value, attribute, device))                                                                  \
    X(CUresult, cuCtxGetCurrent, (CUcontext * context), (context))                                 \
    X(CUresult, cuCtxSetCurrent, (CUcontext context), (context))                                   \
    X(CUresult, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device),                  \
      (context, device))                                                                           \
    X(CUresult, cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device))                         \
    X(CUresult, cuDevicePrimaryCtxGetState, (CUdevice device, unsigned int *flags, int *active),   \
      (device, flags, active))                                                                     \
    X(CUresult, cuMemAlloc_v2, (CUdeviceptr * pointer, size_t size), (pointer, size))              \
    X(CUresult, cuMemFree_v2, (CUdeviceptr pointer), (pointer))                                    \
    X(CUresult, cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes),                      \
      (free_bytes, total_bytes))                                                                   \
    X(CUresult, cuMemAddressReserve,                                                               \
      (CUdeviceptr * pointer, size_t size, size_t alignment, CUdeviceptr wanted,                   \
       unsigned long long flags),                                                                  \
      (pointer, size, alignment, wanted, flags))                                                   \
    X(CUresult, cuMemAddressFree, (CUdeviceptr pointer, size_t size), (pointer, size))             \
    X(CUresult, cuMemCreate,                                                                       \
      (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *properties,  \
       unsigned long long flags),                                                                  \
      (handle, size, properties, flags))                                                           \
    X(CUresult, cuMemRelease, (CUmemGenericAllocationHandle handle), (handle))                     \
    X(CUresult, cuMemRetainAllocationHandle,                                                       \
      (CUmemGenericAllocationHandle * handle, void *pointer), (handle, pointer))                   \
    X(CUresult, cuMemMap,                                                                          \
      (CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle,       \
       unsigned long long flags),                                                                  \
      (pointer, size, offset, handle, flags))                                                      \
    X(CUresult, cuMemUnmap, (CUdeviceptr pointer, size_t size), (pointer, size))                   \
    X(CUresult, cuMemSetAccess,                                                                    \
      (CUdeviceptr pointer, size_t size, const CUmemAccessDesc *access, size_t count),             \
      (pointer, size, access, count))                                                              \
    X(CUresult, cuMemGetAccess,                                                                    \
      (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer),             \
      (flags, location, pointer))                                                                  \
    X(CUresult, cuMemGetAllocationGranularity,                                                     \
      (size_t * granularity, const CUmemAllocationProp *properties,                                \
       CUmemAllocationGranularity_flags which),                                                    \
      (granularity, properties, which))                                                            \
    X(CUresult, cuMemGetAllocationPropertiesFromHandle,                                            \
      (CUmemAllocationProp * properties, CUmemGenericAllocationHandle handle),                     \
      (properties, handle))                                                                        \
    X(CUresult, cuStreamQuery, (CUstream stream), (stream))                                        \
    X(CUresult, cuStreamSynchronize, (CUstream stream), (stream))                                  \
    X(CUresult, cuEventQuery, (CUevent event), (event))                                            \
    X(CUresult, cuMemAllocAsync, (CUdeviceptr * pointer, size_t size, CUstream stream),            \
      (pointer, size, stream))                                                                     \
    X(CUresult, cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream), (pointer, stream))         \
    X(CUresult, cuMemExportToShareableHandle,                                                      \
      (void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,       \
       unsigned long long flags),                                                                  \
      (shareable, handle, type, flags))                                                            \
    X(CUresult, cuMemImportFromShareableHandle,                                                    \
      (CUmemGenericAllocationHandle * handle, void *shareable, CUmemAllocationHandleType type),    \
      (handle, shareable, type))                                                                   \
    X(CUresult, cuMulticastCreate,                                                                 \
      (CUmemGenericAllocationHandle * handle, const CUmulticastObjectProp *properties),            \
      (handle, properties))                                                                        \
    X(CUresult, cuMulticastAddDevice, (CUmemGenericAllocationHandle handle, CUdevice device),      \
      (handle, device))                                                                            \
    X(CUresult, cuMulticastBindMem,                                                                \
      (CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle memory,    \
       size_t memory_offset, size_t size, unsigned long long flags),                               \
      (handle, offset, memory, memory_offset, size, flags))                                        \
    X(CUresult, cuMulticastUnbind,                                                                 \
      (CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t size),          \
      (handle, device, offset, size))                                                              \
    X(CUresult, cuMemAllocManaged, (CUdeviceptr * pointer, size_t size, unsigned int flags),       \
      (pointer, size, flags))                                                                      \
    X(CUresult, cuMemHostAlloc, (void **pointer, size_t size, unsigned int flags),                 \
      (pointer, size, flags))                                                                      \
    X(CUresult, cuMemAllocHost_v2, (void **pointer, size_t size), (pointer, size))                 \
    X(CUresult, cuMemFreeHost, (void *pointer), (pointer))                                         \
    X(CUresult, cuMemHostRegister_v2, (void *pointer, size_t size, unsigned int flags),            \
      (pointer, size, flags))                                                                      \
    X(CUresult, cuMemHostUnregister, (void *pointer), (pointer))                                   \
    X(CUresult, cuMemHostGetDevicePointer_v2,                                                      \
      (CUdeviceptr * out, void *pointer, unsigned int flags), (out, pointer, flags))               \
    X(CUresult, cuMemHostGetFlags, (unsigned int *flags, void *pointer), (flags, pointer))         \
    X(CUresult, cuPointerGetAttribute,                                                             \
      (void *out, CUpointer_attribute which, CUdeviceptr pointer), (out, which, pointer))          \
    X(CUresult, cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t * size, CUdeviceptr pointer), \
      (base, size, pointer))                                                                       \
    X(CUresult, cuCtxGetDevice, (CUdevice * device), (device))                                     \
    X(CUresult, cuCtxGetFlags, (unsigned int *flags), (flags))                                     \
    X(CUresult, cuCtxSynchronize, (void), ())                                                      \
    X(CUresult, cuCtxPushCurrent_v2, (CUcontext context), (context))                               \
    X(CUresult, cuCtxPopCurrent_v2, (CUcontext * context), (context))                              \
    X(CUresult, cuMemsetD32Async,                                                                  \
      (CUdeviceptr pointer, unsigned int value, size_t count, CUstream stream),                    \
      (pointer, value, count, stream))                                                             \
    X(CUresult, cuStreamWriteValue32_v2,                                                           \
      (CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags),                  \
      (stream, address, value, flags))                                                             \
    X(CUresult, cuGetProcAddress_v2,                                                               \
      (const char *symbol, void **function, int version, uint64_t flags,                           \
       CUdriverProcAddressQueryResult *status),                                                    \
      (symbol, function, version, flags, status))                                                  \
    X(CUresult, cuGetErrorName, (CUresult error, const char **text), (error, text))                \
    X(CUresult, cuGetErrorString, (CUresult error, const char **text), (error, text))              \
    GMD_CUDA_DRIVER_STREAM_FUNCTIONS(X)

/* Those on streams, events, copies and memsets; part of the list above. */
#define GMD_CUDA_DRIVER_STREAM_FUNCTIONS(X)                                                        \
    X(CUresult, cuStreamCreate, (CUstream * stream, unsigned int flags), (stream, flags))          \
    X(CUresult, cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority), \
      (stream, flags, priority))                                                                   \
    X(CUresult, cuStreamDestroy_v2, (CUstream stream), (stream))                                   \
    X(CUresult, cuStreamGetFlags, (CUstream stream, unsigned int *flags), (stream, flags))         \
    X(CUresult, cuStreamGetPriority, (CUstream stream, int *priority), (stream, priority))         \
    X(CUresult, cuStreamGetId, (CUstream stream, unsigned long long *id), (stream, id))            \
    X(CUresult, cuStreamGetDevice, (CUstream stream, CUdevice * device), (stream, device))         \
    X(CUresult, cuStreamGetCtx, (CUstream stream, CUcontext * context), (stream, context))         \
    X(CUresult, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),           \
      (stream, event, flags))                                                                      \
    X(CUresult, cuStreamAddCallback,                                                               \
      (CUstream stream, CUstreamCallback callback, void *data, unsigned int flags),                \
      (stream, callback, data, flags))                                                             \
    X(CUresult, cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data),                \
      (stream, function, data))                                                                    \
    X(CUresult, cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status),            \
      (stream, status))                                                                            \
    X(CUresult, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode))           \
    X(CUresult, cuEventCreate, (CUevent * event, unsigned int flags), (event, flags))              \
    X(CUresult, cuEventRecord, (CUevent event, CUstream stream), (event, stream))                  \
    X(CUresult, cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags),      \
      (event, stream, flags))                                                                      \
    X(CUresult, cuEventSynchronize, (CUevent event), (event))                                      \
    X(CUresult, cuEventDestroy_v2, (CUevent event), (event))                                       \
    X(CUresult, cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end),             \
      (milliseconds, start, end))                                                                  \
    X(CUresult, cuEventElapsedTime_v2, (float *milliseconds, CUevent start, CUevent end),          \
      (milliseconds, start, end))                                                                  \
    X(CUresult, cuStreamWaitValue32_v2,                                                            \
      (CUstream stream, CUdeviceptr address, unsigned int value, unsigned int flags),              \
      (stream, address, value, flags))                                                             \
    X(CUresult, cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t count),                \
      (to, value, count))                                                                          \
    X(CUresult, cuMemsetD32_v2, (CUdeviceptr to, unsigned int value, size_t count),                \
      (to, value, count))                                                                          \
    X(CUresult, cuMemsetD8Async,                                                                   \
      (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),                        \
      (to, value, count, stream))                                                                  \
    X(CUresult, cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size), (to, from, size))       \
    X(CUresult, cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream),   \
      (to, from, size, stream))                                                                    \
    X(CUresult, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size),                  \
      (to, from, size))                                                                            \
    X(CUresult, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size), (to, from, size))      \
    X(CUresult, cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t size),                  \
      (to, from, size))                                                                            \
    X(CUresult, cuMemcpyHtoDAsync_v2,                                                              \
      (CUdeviceptr to, const void *from, size_t size, CUstream stream), (to, from, size, stream))  \
    X(CUresult, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t size, CUstream stream),  \
      (to, from, size, stream))                                                                    \
    X(CUresult, cuMemcpyDtoDAsync_v2,                                                              \
      (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), (to, from, size, stream))  \
    X(CUresult, cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream))

/* X(name, value, text): runtime errors, with the texts of cudaGetErrorString. */
#define GMD_CUDA_ERRORS(X)                                                                         \
    X(cudaSuccess, 0, "no error")                                                                  \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                                \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                               \
    X(cudaErrorInitializationError, 3, "initialization error")                                     \
    X(cudaErrorCudartUnloading, 4, "driver shutting down")                                         \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                          \
    X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                                 \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                    \
    X(cudaErrorInsufficientDriver, 35,                                                             \
      "CUDA driver version is insufficient for CUDA runtime version")                              \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                       \
    X(cudaErrorDeviceUninitialized, 201, "invalid device context")                                 \
    X(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered")                       \
    X(cudaErrorUnsupportedLimit, 215, "limit is not supported on this architecture")               \
    X(cudaErrorPeerAccessUnsupported, 217,                                                         \
      "peer access is not supported between these two devices")                                    \
    X(cudaErrorOperatingSystem, 304, "OS call failed or operation not supported on this OS")       \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                              \
    X(cudaErrorIllegalState, 401, "the operation cannot be performed in the present state")        \
    X(cudaErrorSymbolNotFound, 500, "named symbol not found")                                      \
    X(cudaErrorNotReady, 600, "device not ready")                                                  \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                    \
    X(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")                      \
    X(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                    \
    X(cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")                      \
    X(cudaErrorContextIsDestroyed, 709, "context is destroyed")                                    \
    X(cudaErrorAssert, 710, "device-side assert triggered")                                        \
    X(cudaErrorHostMemoryAlreadyRegistered, 712,                                                   \
      "part or all of the requested memory range is already mapped")                               \
    X(cudaErrorHostMemoryNotRegistered, 713,                                                       \
      "pointer does not correspond to a registered memory region")                                 \
    X(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")                  \
    X(cudaErrorMisalignedAddress, 716, "misaligned address")                                       \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                   \
    X(cudaErrorNotPermitted, 800, "operation not permitted")                                       \
    X(cudaErrorNotSupported, 801, "operation not supported")                                       \
    X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")  \
    X(cudaErrorStreamCaptureInvalidated, 901,                                                      \
      "operation failed due to a previous error during capture")                                   \
    X(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                                    \
    X(cudaErrorStreamCaptureMerge, 902,                                                            \
      "operation would result in a merge of separate capture sequences")                           \
    X(cudaErrorStreamCaptureUnmatched, 903,                                                        \
      "capture was not ended in the same stream as it began")                                      \
    X(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                   \
    X(cudaErrorStreamCaptureIsolation, 905,                                                        \
      "dependency created on uncaptured work in another stream")                                   \
    X(cudaErrorStreamCaptureImplicit, 906,                                                         \
      "operation would make the legacy stream depend on a capturing blocking stream")              \
    X(cudaErrorCapturedEvent, 907,                                                                 \
      "operation not permitted on an event last recorded in a capturing stream")                   \
    X(cudaErrorStreamCaptureWrongThread, 908,                                                      \
      "attempt to terminate a thread-local capture sequence from another thread")                  \
    X(cudaErrorUnknown, 999, "unknown error")

/* X(name, value): driver errors; the texts are those of the runtime's error of the same value. */
#define GMD_CUDA_DRIVER_ERRORS(X)                                                                  \
    X(CUDA_SUCCESS, 0)                                                                             \
    X(CUDA_ERROR_INVALID_VALUE, 1)                                                                 \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                 \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                                                               \
    X(CUDA_ERROR_DEINITIALIZED, 4)                                                                 \
    X(CUDA_ERROR_NO_DEVICE, 100)                                                                   \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                                                              \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                                                             \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                           \
    X(CUDA_ERROR_UNSUPPORTED_LIMIT, 215)                                                           \
    X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217)                                                     \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304)                                                            \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                                                              \
    X(CUDA_ERROR_ILLEGAL_STATE, 401)                                                               \
    X(CUDA_ERROR_NOT_FOUND, 500)                                                                   \
    X(CUDA_ERROR_NOT_READY, 600)                                                                   \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                             \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                              \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)                                                 \
    X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705)                                                     \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                                        \
    X(CUDA_ERROR_ASSERT, 710)                                                                      \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                                         \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                                          \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                                                               \
    X(CUDA_ERROR_NOT_PERMITTED, 800)                                                               \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                                                               \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                  \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                                                  \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902)                                                        \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)                                                    \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)                                                     \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905)                                                    \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                                                     \
    X(CUDA_ERROR_CAPTURED_EVENT, 907)                                                              \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                                                 \
    X(CUDA_ERROR_UNKNOWN, 999)

/* X(driver's name, value): device attributes that only the driver has. */
#define GMD_CUDA_DRIVER_ATTRIBUTES(X)                                                              \
    X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)                                \
    X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)                        \
    X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110)

/* X(name, driver's name, value): device attributes. */
#define GMD_CUDA_DEVICE_ATTRIBUTES(X)                                                              \
    X(cudaDevAttrMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                 \
    X(cudaDevAttrWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                                      \
    X(cudaDevAttrMultiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                \
    X(cudaDevAttrIntegrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                                   \
    X(cudaDevAttrCanMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19)                    \
    X(cudaDevAttrConcurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31)                    \
    X(cudaDevAttrPciBusId, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 33)                                     \
    X(cudaDevAttrPciDeviceId, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34)                               \
    X(cudaDevAttrL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                               \
    X(cudaDevAttrAsyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40)                     \
    X(cudaDevAttrUnifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                    \
    X(cudaDevAttrPciDomainId, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50)                               \
    X(cudaDevAttrComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)         \
    X(cudaDevAttrComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)         \
    X(cudaDevAttrStreamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 78)   \
    X(cudaDevAttrManagedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83)                            \
    X(cudaDevAttrMaxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,  \
      39)                                                                                          \
    X(cudaDevAttrPageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 88)             \
    X(cudaDevAttrConcurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89)       \
    X(cudaDevAttrHostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 99)           \
    X(cudaDevAttrGPUDirectRDMASupported, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 116)       \
    X(cudaDevAttrMemoryPoolSupportedHandleTypes,                                                   \
      CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 119)                                     \
    X(cudaDevAttrMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)

#endif
