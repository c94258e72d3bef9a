/* gmd_cuda.h - gmd's own declaration of the part of the CUDA runtime and driver API that it uses.
 *
 * gmd builds without a CUDA toolkit. Values, layouts and signatures are those of CUDA 13; the test
 * device/toolkit compares every one of them with the toolkit's headers where there is a toolkit.
 * Do not include it together with cuda_runtime_api.h or cuda.h. */
#ifndef GMD_CUDA_H
#define GMD_CUDA_H

#include "gmd_cuda_lists.h"

#include <stddef.h>

#define CUDART_VERSION 13000

#define GMD_CUDA_ENUMERATOR(name, value, ...)                name = value,
#define GMD_CUDA_SHORT_ENUMERATOR(name, value)               name = value,
#define GMD_CUDA_RUNTIME_ATTRIBUTE(name, driver_name, value) name = value,
#define GMD_CUDA_DRIVER_ATTRIBUTE(name, driver_name, value)  driver_name = value,

typedef enum cudaError { GMD_CUDA_ERRORS(GMD_CUDA_ENUMERATOR) } cudaError_t;
typedef enum cudaError_enum { GMD_CUDA_DRIVER_ERRORS(GMD_CUDA_SHORT_ENUMERATOR) } CUresult;
enum cudaDeviceAttr { GMD_CUDA_DEVICE_ATTRIBUTES(GMD_CUDA_RUNTIME_ATTRIBUTE) };
typedef enum CUdevice_attribute_enum {
    GMD_CUDA_DEVICE_ATTRIBUTES(GMD_CUDA_DRIVER_ATTRIBUTE)
} CUdevice_attribute;

#undef GMD_CUDA_ENUMERATOR
#undef GMD_CUDA_SHORT_ENUMERATOR
#undef GMD_CUDA_RUNTIME_ATTRIBUTE
#undef GMD_CUDA_DRIVER_ATTRIBUTE

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4,
};

enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3,
};

struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer;
    void *hostPointer;
    long reserved[8];
};

enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2,
};

enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2,
};

typedef enum CUstreamCaptureStatus_enum {
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
} CUstreamCaptureStatus;

typedef enum CUstreamCaptureMode_enum {
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
} CUstreamCaptureMode;

enum cudaGraphNodeType {
    cudaGraphNodeTypeKernel = 0,
    cudaGraphNodeTypeMemcpy = 1,
    cudaGraphNodeTypeMemset = 2,
    cudaGraphNodeTypeHost = 3,
    cudaGraphNodeTypeEmpty = 5,
    cudaGraphNodeTypeWaitEvent = 6,
    cudaGraphNodeTypeEventRecord = 7,
};

typedef struct cudaGraphEdgeData_st {
    unsigned char from_port, to_port, type, reserved[5];
} cudaGraphEdgeData;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
typedef struct CUctx_st *CUcontext;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef cudaGraphExec_t CUgraphExec;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;

#define cudaStreamLegacy    ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

#define cudaStreamDefault       0x00
#define cudaStreamNonBlocking   0x01
#define cudaEventDefault        0x00
#define cudaEventBlockingSync   0x01
#define cudaEventDisableTiming  0x02
#define cudaEventInterprocess   0x04
#define cudaEventRecordDefault  0x00
#define cudaEventRecordExternal 0x01
#define cudaEventWaitDefault    0x00
#define cudaEventWaitExternal   0x01

#define cudaHostAllocDefault       0x00
#define cudaHostAllocPortable      0x01
#define cudaHostAllocMapped        0x02
#define cudaHostAllocWriteCombined 0x04

typedef void (*cudaHostFn_t)(void *data);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *data);
typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);

#define cudaStreamAddCaptureDependencies 0
#define cudaStreamSetCaptureDependencies 1

#define CU_STREAM_WAIT_VALUE_GEQ 0
#define CU_STREAM_WAIT_VALUE_EQ  1
#define CU_STREAM_WAIT_VALUE_AND 2
#define CU_STREAM_WAIT_VALUE_NOR 3

#define cudaInvalidDeviceId ((int)-2)

#define GMD_CUDA_DECLARE(result, name, parameters, arguments) result name parameters;
GMD_CUDART_FUNCTIONS(GMD_CUDA_DECLARE)
GMD_CUDART_STREAM_FUNCTIONS(GMD_CUDA_DECLARE)
GMD_CUDART_TEXT_FUNCTIONS(GMD_CUDA_DECLARE)
GMD_CUDA_DRIVER_FUNCTIONS(GMD_CUDA_DECLARE)
GMD_CUDA_DRIVER_STREAM_FUNCTIONS(GMD_CUDA_DECLARE)
#undef GMD_CUDA_DECLARE

#endif
