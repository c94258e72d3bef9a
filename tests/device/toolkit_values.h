/* toolkit_values.h - every value and layout of gmd_cuda.h as a table. Included twice, behind gmd's
 * header and behind the toolkit's, in two files; the two tables are compared. */
#ifndef TOOLKIT_VALUES_H
#define TOOLKIT_VALUES_H

#include <stddef.h>

typedef struct toolkit_value {
    const char *name;
    long long value;
} toolkit_value;

extern const toolkit_value gmd_values[], toolkit_values[];

#define VALUE(expression) {#expression, (long long)(expression)},

#define TOOLKIT_CONSTANTS                                                                          \
    VALUE(CUDART_VERSION / 1000)                                                                   \
    VALUE(cudaMemcpyHostToHost)                                                                    \
    VALUE(cudaMemcpyHostToDevice)                                                                  \
    VALUE(cudaMemcpyDeviceToHost)                                                                  \
    VALUE(cudaMemcpyDeviceToDevice)                                                                \
    VALUE(cudaMemcpyDefault)                                                                       \
    VALUE(cudaMemoryTypeUnregistered)                                                              \
    VALUE(cudaMemoryTypeHost)                                                                      \
    VALUE(cudaMemoryTypeDevice)                                                                    \
    VALUE(cudaMemoryTypeManaged)                                                                   \
    VALUE(cudaStreamLegacy)                                                                        \
    VALUE(cudaStreamPerThread)                                                                     \
    VALUE(cudaStreamDefault)                                                                       \
    VALUE(cudaStreamNonBlocking)                                                                   \
    VALUE(cudaEventDefault)                                                                        \
    VALUE(cudaEventBlockingSync)                                                                   \
    VALUE(cudaEventDisableTiming)                                                                  \
    VALUE(cudaEventInterprocess)                                                                   \
    VALUE(cudaEventRecordDefault)                                                                  \
    VALUE(cudaEventRecordExternal)                                                                 \
    VALUE(cudaEventWaitDefault)                                                                    \
    VALUE(cudaEventWaitExternal)                                                                   \
    VALUE(cudaHostAllocDefault)                                                                    \
    VALUE(cudaHostAllocPortable)                                                                   \
    VALUE(cudaHostAllocMapped)                                                                     \
    VALUE(cudaHostAllocWriteCombined)                                                              \
    VALUE(sizeof(struct cudaDeviceProp))                                                           \
    VALUE(offsetof(struct cudaDeviceProp, totalGlobalMem))                                         \
    VALUE(offsetof(struct cudaDeviceProp, multiProcessorCount))                                    \
    VALUE(offsetof(struct cudaDeviceProp, memoryPoolsSupported))                                   \
    VALUE(offsetof(struct cudaDeviceProp, reserved))                                               \
    VALUE(sizeof(CUmemAllocationProp))                                                             \
    VALUE(sizeof(CUmemAccessDesc))                                                                 \
    VALUE(CU_MEM_ACCESS_FLAGS_PROT_READWRITE)                                                      \
    VALUE(CU_MEM_HANDLE_TYPE_FABRIC)                                                               \
    VALUE(cudaMemPoolAttrUsedMemHigh)                                                              \
    VALUE(sizeof(cudaIpcEventHandle_t))                                                            \
    VALUE(CU_POINTER_ATTRIBUTE_MAPPED)                                                             \
    VALUE(CU_POINTER_ATTRIBUTE_RANGE_SIZE)                                                         \
    VALUE(CU_MEMORYTYPE_DEVICE)                                                                    \
    VALUE(cudaLimitMallocHeapSize)                                                                 \
    VALUE(cudaDevP2PAttrCudaArrayAccessSupported)                                                  \
    VALUE(cudaHostRegisterReadOnly)                                                                \
    VALUE(cudaDeviceScheduleMask)                                                                  \
    VALUE(cudaDeviceSyncMemops)                                                                    \
    VALUE(sizeof(cudaIpcMemHandle_t))                                                              \
    VALUE(cudaStreamCaptureStatusNone)                                                             \
    VALUE(cudaStreamCaptureStatusActive)                                                           \
    VALUE(cudaStreamCaptureStatusInvalidated)                                                      \
    VALUE(cudaStreamCaptureModeGlobal)                                                             \
    VALUE(cudaStreamCaptureModeThreadLocal)                                                        \
    VALUE(cudaStreamCaptureModeRelaxed)                                                            \
    VALUE(CU_STREAM_CAPTURE_STATUS_INVALIDATED)                                                    \
    VALUE(CU_STREAM_CAPTURE_MODE_RELAXED)                                                          \
    VALUE(cudaGraphNodeTypeKernel)                                                                 \
    VALUE(cudaGraphNodeTypeMemcpy)                                                                 \
    VALUE(cudaGraphNodeTypeMemset)                                                                 \
    VALUE(cudaGraphNodeTypeHost)                                                                   \
    VALUE(cudaGraphNodeTypeEmpty)                                                                  \
    VALUE(cudaGraphNodeTypeWaitEvent)                                                              \
    VALUE(cudaGraphNodeTypeEventRecord)                                                            \
    VALUE(sizeof(cudaGraphEdgeData))                                                               \
    VALUE(cudaStreamAddCaptureDependencies)                                                        \
    VALUE(cudaStreamSetCaptureDependencies)                                                        \
    VALUE(CU_STREAM_WAIT_VALUE_GEQ)                                                                \
    VALUE(CU_STREAM_WAIT_VALUE_EQ)                                                                 \
    VALUE(CU_STREAM_WAIT_VALUE_AND)                                                                \
    VALUE(CU_STREAM_WAIT_VALUE_NOR)                                                                \
    VALUE(sizeof(CUmemPoolProps))                                                                  \
    VALUE(sizeof(CUmemLocation))                                                                   \
    VALUE(sizeof(struct cudaMemPoolProps))                                                         \
    VALUE(sizeof(struct cudaMemcpy3DParms))                                                        \
    VALUE(offsetof(struct cudaMemcpy3DParms, extent))                                              \
    VALUE(offsetof(struct cudaMemcpy3DParms, kind))                                                \
    VALUE(sizeof(struct cudaPitchedPtr))                                                           \
    VALUE(sizeof(struct cudaExtent))                                                               \
    VALUE(sizeof(CUuuid))                                                                          \
    VALUE(sizeof(CUipcMemHandle))                                                                  \
    VALUE(sizeof(CUipcEventHandle))                                                                \
    VALUE(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)                                                       \
    VALUE(CU_MEMPOOL_ATTR_USED_MEM_HIGH)                                                           \
    VALUE(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)                                                        \
    VALUE(CU_POINTER_ATTRIBUTE_BUFFER_ID)                                                          \
    VALUE(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE)                                         \
    VALUE(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES)                                               \
    VALUE(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE)                                                     \
    VALUE(CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED)                                     \
    VALUE(CU_MEM_ADVISE_SET_READ_MOSTLY)                                                           \
    VALUE(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)                                           \
    VALUE(cudaEnablePerThreadDefaultStream)                                                        \
    VALUE(cudaInvalidDeviceId)                                                                     \
    VALUE(sizeof(cudaError_t))                                                                     \
    VALUE(sizeof(CUresult))                                                                        \
    VALUE(sizeof(enum cudaMemcpyKind))                                                             \
    VALUE(sizeof(CUdevice))                                                                        \
    VALUE(sizeof(CUdeviceptr))                                                                     \
    VALUE(sizeof(struct cudaPointerAttributes))                                                    \
    VALUE(offsetof(struct cudaPointerAttributes, type))                                            \
    VALUE(offsetof(struct cudaPointerAttributes, device))                                          \
    VALUE(offsetof(struct cudaPointerAttributes, devicePointer))                                   \
    VALUE(offsetof(struct cudaPointerAttributes, hostPointer))                                     \
    VALUE(offsetof(struct cudaPointerAttributes, reserved))

/* The lists of enumerators are gmd's; in the toolkit's table the names have the toolkit's values.
 */
#define LISTED_ERROR(name, value, text)            VALUE(name)
#define LISTED_DRIVER_ERROR(name, value)           VALUE(name)
#define LISTED_ATTRIBUTE(name, driver_name, value) VALUE(name) VALUE(driver_name)

#define TOOLKIT_TABLE                                                                              \
    {                                                                                              \
        TOOLKIT_CONSTANTS GMD_CUDA_ERRORS(LISTED_ERROR)                                            \
            GMD_CUDA_DRIVER_ERRORS(LISTED_DRIVER_ERROR)                                            \
                GMD_CUDA_DEVICE_ATTRIBUTES(LISTED_ATTRIBUTE)                                       \
        {                                                                                          \
            NULL, 0                                                                                \
        }                                                                                          \
    }

#endif
