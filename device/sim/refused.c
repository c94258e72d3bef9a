/* Calls of features that this device has not, which loaders want to find all the same. */
#include "state.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define REFUSE_RUNTIME(name, parameters) SIM_CALL(name, parameters, (int)cudaErrorNotSupported)

#define REFUSE(name, parameters)                                                                   \
    CUresult gmd_sim_##name parameters                                                             \
    {                                                                                              \
        sim_call call;                                                                             \
        if (call_enter(&call, CALL_##name)) {                                                      \
            call.record.result = CUDA_ERROR_NOT_SUPPORTED;                                         \
        }                                                                                          \
        return (CUresult)call_leave(&call);                                                        \
    }

REFUSE(cuMemExportToShareableHandle, (void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags))
REFUSE(cuMemImportFromShareableHandle,
       (CUmemGenericAllocationHandle * handle, void *shareable, CUmemAllocationHandleType type))
REFUSE(cuMulticastCreate,
       (CUmemGenericAllocationHandle * handle, const CUmulticastObjectProp *properties))
REFUSE(cuMulticastAddDevice, (CUmemGenericAllocationHandle handle, CUdevice device))
REFUSE(cuMulticastBindMem,
       (CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle memory,
        size_t memory_offset, size_t size, unsigned long long flags))
REFUSE(cuMulticastUnbind,
       (CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t size))
REFUSE(cuMemAllocManaged, (CUdeviceptr * pointer, size_t size, unsigned int flags))

/* Managed memory: cudaDevAttrManagedMemory says that there is none. */
REFUSE_RUNTIME(cudaMallocManaged, (void **pointer, size_t size, unsigned int flags))
REFUSE_RUNTIME(cudaMemAdvise, (const void *pointer, size_t size, enum cudaMemoryAdvise advice,
                               struct cudaMemLocation location))
REFUSE_RUNTIME(cudaMemPrefetchAsync,
               (const void *pointer, size_t size, struct cudaMemLocation location,
                unsigned int flags, cudaStream_t handle))
REFUSE_RUNTIME(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event))
REFUSE_RUNTIME(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle))
REFUSE_RUNTIME(cudaMemPoolExportToShareableHandle,
               (void *shareable, cudaMemPool_t pool, enum cudaMemAllocationHandleType type,
                unsigned int flags))
REFUSE_RUNTIME(cudaMemPoolImportFromShareableHandle,
               (cudaMemPool_t * pool, void *shareable, enum cudaMemAllocationHandleType type,
                unsigned int flags))
