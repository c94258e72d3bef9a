/* Calls of features that this device has not, which loaders want to find all the same. */
#include "state.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

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
REFUSE(cuCtxPushCurrent_v2, (CUcontext context))
REFUSE(cuCtxPopCurrent_v2, (CUcontext * context))
