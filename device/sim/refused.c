/* Calls of features that this device has not, which loaders want to find all the same. */
#include "calls.h"

static void ignore(int none, ...)
{
    (void)none;
}

#define REFUSE_RUNTIME(name, parameters, ...)                                                      \
    SIM_CALL(name, parameters, (ignore(0, __VA_ARGS__), (int)cudaErrorNotSupported))

#define REFUSE(name, parameters, ...)                                                              \
    CUresult gmd_sim_##name parameters                                                             \
    {                                                                                              \
        sim_call call;                                                                             \
        if (call_enter(&call, CALL_##name)) {                                                      \
            ignore(0, __VA_ARGS__);                                                                \
            call.record.result = CUDA_ERROR_NOT_SUPPORTED;                                         \
        }                                                                                          \
        return (CUresult)call_leave(&call);                                                        \
    }

/* Sharing between processes, and multicast objects: the device has no links. */
REFUSE(cuMemExportToShareableHandle,
       (void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
        unsigned long long flags),
       shareable, handle, type, flags)
REFUSE(cuMemImportFromShareableHandle,
       (CUmemGenericAllocationHandle * handle, void *shareable, CUmemAllocationHandleType type),
       handle, shareable, type)
REFUSE(cuMulticastCreate,
       (CUmemGenericAllocationHandle * handle, const CUmulticastObjectProp *properties), handle,
       properties)
REFUSE(cuMulticastAddDevice, (CUmemGenericAllocationHandle handle, CUdevice device), handle, device)
REFUSE(cuMulticastBindMem,
       (CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle memory,
        size_t memory_offset, size_t size, unsigned long long flags),
       handle, offset, memory, memory_offset, size, flags)
REFUSE(cuMulticastUnbind,
       (CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t size), handle,
       device, offset, size)

/* Managed memory: cudaDevAttrManagedMemory says that there is none. */
REFUSE(cuMemAllocManaged, (CUdeviceptr * pointer, size_t size, unsigned int flags), pointer, size,
       flags)
REFUSE_RUNTIME(cudaMallocManaged, (void **pointer, size_t size, unsigned int flags), pointer, size,
               flags)
REFUSE_RUNTIME(cudaMemAdvise,
               (const void *pointer, size_t size, enum cudaMemoryAdvise advice,
                struct cudaMemLocation location),
               pointer, size, advice, location)
REFUSE(cuMemAdvise_v2,
       (CUdeviceptr pointer, size_t size, CUmem_advise advice, CUmemLocation location), pointer,
       size, advice, location)
REFUSE(cuMemPrefetchAsync_v2,
       (CUdeviceptr pointer, size_t size, CUmemLocation location, unsigned int flags,
        CUstream handle),
       pointer, size, location, flags, handle)
REFUSE_RUNTIME(cudaMemPrefetchAsync,
               (const void *pointer, size_t size, struct cudaMemLocation location,
                unsigned int flags, cudaStream_t handle),
               pointer, size, location, flags, handle)

REFUSE_RUNTIME(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event), handle,
               event)
REFUSE_RUNTIME(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle), event,
               handle)
REFUSE_RUNTIME(cudaMemPoolExportToShareableHandle,
               (void *shareable, cudaMemPool_t pool, enum cudaMemAllocationHandleType type,
                unsigned int flags),
               shareable, pool, type, flags)
REFUSE_RUNTIME(cudaMemPoolImportFromShareableHandle,
               (cudaMemPool_t * pool, void *shareable, enum cudaMemAllocationHandleType type,
                unsigned int flags),
               pool, shareable, type, flags)
REFUSE(cuIpcGetEventHandle, (CUipcEventHandle * handle, CUevent event), handle, event)
REFUSE(cuIpcOpenEventHandle, (CUevent * event, CUipcEventHandle handle), event, handle)
REFUSE(cuMemPoolExportToShareableHandle,
       (void *shareable, CUmemoryPool pool, CUmemAllocationHandleType type,
        unsigned long long flags),
       shareable, pool, type, flags)
REFUSE(cuMemPoolImportFromShareableHandle,
       (CUmemoryPool * pool, void *shareable, CUmemAllocationHandleType type,
        unsigned long long flags),
       pool, shareable, type, flags)
