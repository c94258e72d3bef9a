/* gmd_cuda_driver_lists.h - the driver's part of the one list of functions: see gmd_cuda_lists.h.
 */
#ifndef GMD_CUDA_DRIVER_LISTS_H
#define GMD_CUDA_DRIVER_LISTS_H

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
    X(CUresult, cuCtxRecordEvent, (CUcontext context, CUevent event), (context, event))            \
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
    GMD_CUDA_DRIVER_DEVICE_FUNCTIONS(X)                                                            \
    GMD_CUDA_DRIVER_STREAM_FUNCTIONS(X)

/* Those on devices, peers, other processes and stream-ordered pools; part of the list above. */
#define GMD_CUDA_DRIVER_DEVICE_FUNCTIONS(X)                                                        \
    X(CUresult, cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device), (uuid, device))              \
    X(CUresult, cuDeviceCanAccessPeer, (int *answer, CUdevice device, CUdevice peer),              \
      (answer, device, peer))                                                                      \
    X(CUresult, cuDeviceGetP2PAttribute,                                                           \
      (int *value, CUdevice_P2PAttribute which, CUdevice from, CUdevice to),                       \
      (value, which, from, to))                                                                    \
    X(CUresult, cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags), (peer, flags))        \
    X(CUresult, cuCtxDisablePeerAccess, (CUcontext peer), (peer))                                  \
    X(CUresult, cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr pointer),                 \
      (handle, pointer))                                                                           \
    X(CUresult, cuIpcOpenMemHandle_v2,                                                             \
      (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags),                          \
      (pointer, handle, flags))                                                                    \
    X(CUresult, cuIpcCloseMemHandle, (CUdeviceptr pointer), (pointer))                             \
    X(CUresult, cuIpcGetEventHandle, (CUipcEventHandle * handle, CUevent event), (handle, event))  \
    X(CUresult, cuIpcOpenEventHandle, (CUevent * event, CUipcEventHandle handle), (event, handle)) \
    X(CUresult, cuMemAdvise_v2,                                                                    \
      (CUdeviceptr pointer, size_t size, CUmem_advise advice, CUmemLocation location),             \
      (pointer, size, advice, location))                                                           \
    X(CUresult, cuMemPrefetchAsync_v2,                                                             \
      (CUdeviceptr pointer, size_t size, CUmemLocation location, unsigned int flags,               \
       CUstream stream),                                                                           \
      (pointer, size, location, flags, stream))                                                    \
    X(CUresult, cuPointerGetAttributes,                                                            \
      (unsigned int count, CUpointer_attribute *which, void **out, CUdeviceptr pointer),           \
      (count, which, out, pointer))                                                                \
    X(CUresult, cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device)) \
    X(CUresult, cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device))        \
    X(CUresult, cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool), (device, pool))          \
    X(CUresult, cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *properties),          \
      (pool, properties))                                                                          \
    X(CUresult, cuMemPoolDestroy, (CUmemoryPool pool), (pool))                                     \
    X(CUresult, cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep_bytes), (pool, keep_bytes))       \
    X(CUresult, cuMemPoolGetAttribute,                                                             \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value), (pool, attribute, value))   \
    X(CUresult, cuMemPoolSetAttribute,                                                             \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value), (pool, attribute, value))   \
    X(CUresult, cuMemPoolSetAccess,                                                                \
      (CUmemoryPool pool, const CUmemAccessDesc *access, size_t count), (pool, access, count))     \
    X(CUresult, cuMemPoolGetAccess,                                                                \
      (CUmemAccess_flags * flags, CUmemoryPool pool, CUmemLocation * location),                    \
      (flags, pool, location))                                                                     \
    X(CUresult, cuMemPoolExportToShareableHandle,                                                  \
      (void *shareable, CUmemoryPool pool, CUmemAllocationHandleType type,                         \
       unsigned long long flags),                                                                  \
      (shareable, pool, type, flags))                                                              \
    X(CUresult, cuMemPoolImportFromShareableHandle,                                                \
      (CUmemoryPool * pool, void *shareable, CUmemAllocationHandleType type,                       \
       unsigned long long flags),                                                                  \
      (pool, shareable, type, flags))                                                              \
    X(CUresult, cuMemAllocFromPoolAsync,                                                           \
      (CUdeviceptr * pointer, size_t size, CUmemoryPool pool, CUstream stream),                    \
      (pointer, size, pool, stream))

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

/* Likewise of the driver, which cuGetProcAddress gives under the plain name when asked for them. */
#define GMD_CUDA_DRIVER_PER_THREAD_FUNCTIONS(X)                                                    \
    X(CUresult, cuStreamGetFlags, _ptsz, (CUstream stream, unsigned int *flags),                   \
      (OWN(stream), flags))                                                                        \
    X(CUresult, cuStreamGetPriority, _ptsz, (CUstream stream, int *priority),                      \
      (OWN(stream), priority))                                                                     \
    X(CUresult, cuStreamGetId, _ptsz, (CUstream stream, unsigned long long *id),                   \
      (OWN(stream), id))                                                                           \
    X(CUresult, cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice * device),                    \
      (OWN(stream), device))                                                                       \
    X(CUresult, cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext * context),                     \
      (OWN(stream), context))                                                                      \
    X(CUresult, cuStreamQuery, _ptsz, (CUstream stream), (OWN(stream)))                            \
    X(CUresult, cuStreamSynchronize, _ptsz, (CUstream stream), (OWN(stream)))                      \
    X(CUresult, cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned int flags),    \
      (OWN(stream), event, flags))                                                                 \
    X(CUresult, cuStreamAddCallback, _ptsz,                                                        \
      (CUstream stream, CUstreamCallback callback, void *data, unsigned int flags),                \
      (OWN(stream), callback, data, flags))                                                        \
    X(CUresult, cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void *data),         \
      (OWN(stream), function, data))                                                               \
    X(CUresult, cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus * status),     \
      (OWN(stream), status))                                                                       \
    X(CUresult, cuStreamWaitValue32_v2, _ptsz,                                                     \
      (CUstream stream, CUdeviceptr address, unsigned int value, unsigned int flags),              \
      (OWN(stream), address, value, flags))                                                        \
    X(CUresult, cuStreamWriteValue32_v2, _ptsz,                                                    \
      (CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags),                  \
      (OWN(stream), address, value, flags))                                                        \
    X(CUresult, cuEventRecord, _ptsz, (CUevent event, CUstream stream), (event, OWN(stream)))      \
    X(CUresult, cuEventRecordWithFlags, _ptsz,                                                     \
      (CUevent event, CUstream stream, unsigned int flags), (event, OWN(stream), flags))           \
    X(CUresult, cuMemAllocAsync, _ptsz, (CUdeviceptr * pointer, size_t size, CUstream stream),     \
      (pointer, size, OWN(stream)))                                                                \
    X(CUresult, cuMemAllocFromPoolAsync, _ptsz,                                                    \
      (CUdeviceptr * pointer, size_t size, CUmemoryPool pool, CUstream stream),                    \
      (pointer, size, pool, OWN(stream)))                                                          \
    X(CUresult, cuMemFreeAsync, _ptsz, (CUdeviceptr pointer, CUstream stream),                     \
      (pointer, OWN(stream)))                                                                      \
    X(CUresult, cuMemPrefetchAsync_v2, _ptsz,                                                      \
      (CUdeviceptr pointer, size_t size, CUmemLocation location, unsigned int flags,               \
       CUstream stream),                                                                           \
      (pointer, size, location, flags, OWN(stream)))                                               \
    X(CUresult, cuMemsetD8Async, _ptsz,                                                            \
      (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),                        \
      (to, value, count, OWN(stream)))                                                             \
    X(CUresult, cuMemsetD32Async, _ptsz,                                                           \
      (CUdeviceptr to, unsigned int value, size_t count, CUstream stream),                         \
      (to, value, count, OWN(stream)))                                                             \
    X(CUresult, cuMemcpyAsync, _ptsz,                                                              \
      (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream),                            \
      (to, from, size, OWN(stream)))                                                               \
    X(CUresult, cuMemcpyHtoDAsync_v2, _ptsz,                                                       \
      (CUdeviceptr to, const void *from, size_t size, CUstream stream),                            \
      (to, from, size, OWN(stream)))                                                               \
    X(CUresult, cuMemcpyDtoHAsync_v2, _ptsz,                                                       \
      (void *to, CUdeviceptr from, size_t size, CUstream stream), (to, from, size, OWN(stream)))   \
    X(CUresult, cuMemcpyDtoDAsync_v2, _ptsz,                                                       \
      (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream),                            \
      (to, from, size, OWN(stream)))                                                               \
    X(CUresult, cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), (exec, OWN(stream)))

/* And those that take no stream and use the default one: implemented beside the plain ones. */
#define GMD_CUDA_DRIVER_PER_THREAD_SYNCHRONOUS(X)                                                  \
    X(CUresult, cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t size),                  \
      (to, from, size))                                                                            \
    X(CUresult, cuMemcpyHtoD_v2, _ptds, (CUdeviceptr to, const void *from, size_t size),           \
      (to, from, size))                                                                            \
    X(CUresult, cuMemcpyDtoH_v2, _ptds, (void *to, CUdeviceptr from, size_t size),                 \
      (to, from, size))                                                                            \
    X(CUresult, cuMemcpyDtoD_v2, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t size),           \
      (to, from, size))                                                                            \
    X(CUresult, cuMemsetD8_v2, _ptds, (CUdeviceptr to, unsigned char value, size_t count),         \
      (to, value, count))                                                                          \
    X(CUresult, cuMemsetD32_v2, _ptds, (CUdeviceptr to, unsigned int value, size_t count),         \
      (to, value, count))

#endif
