/* cupti_calls.h - what of CUPTI (CUDA's profiling interface) and of the driver's calls is needed to
 * see what is queued: gmd's own declarations, so that it builds where there is no toolkit. Their
 * sources are CUDA 13.0's headers: cupti_callbacks.h, cupti_driver_cbid.h (the numbers, which are
 * part of the ABI and never change), generated_cuda_meta.h (the calls' parameters) and cuda.h.
 * Where a toolkit is found, tests/sanitizer/test_toolkit.c compares each number and offset. */
#ifndef CUPTI_CALLS_H
#define CUPTI_CALLS_H

#include <stddef.h>
#include <stdint.h>

enum { /* values of CUPTI and CUDA */
       CUPTI_OK = 0,
       CUPTI_TAKEN = 39,       /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
       CUPTI_DRIVER_CALLS = 1, /* CUPTI_CB_DOMAIN_DRIVER_API */
       CUPTI_ENTER = 0,        /* CUPTI_API_ENTER */
       CUDA_INVALID_VALUE = 1,
       CUDA_ILLEGAL_ADDRESS = 700,
       CUDA_STREAM_NON_BLOCKING = 1,
       CUDA_MEMORY_DEVICE = 2, /* CU_MEMORYTYPE_DEVICE */
       CUDA_MEMORY_UNIFIED = 4,
       CUDA_PARAMETERS_END = 0, /* CU_LAUNCH_PARAM_END and so on */
       CUDA_PARAMETERS_AT = 1,
       CUDA_PARAMETERS_BYTES = 2
};

typedef struct cupti_call { /* CUpti_CallbackData */
    int site;
    const char *function;
    const void *parameters;
    const int *result;  /* valid when the call returns */
    const char *symbol; /* the kernel's name, of launches */
    void *context;
} cupti_call;

typedef void (*cupti_callback)(void *context, int domain, uint32_t number, const void *call);

/* Where a parameter lies that a call does not have. */
#define CUPTI_NOWHERE 255

typedef enum cupti_action {
    ACTION_NONE,
    /* before the call */
    ACTION_KERNEL,       /* a: the function, b: kernelParams, the next word: extra */
    ACTION_KERNEL_EX,    /* a: the function, b: kernelParams, likewise; stream: the configuration */
    ACTION_COOPERATIVE,  /* as KERNEL, without extra */
    ACTION_OPERANDS,     /* a, b: addresses */
    ACTION_FROM_HOST,    /* a: the address that is written to */
    ACTION_RECTANGLE,    /* a: the copy's description, within which stand two addresses */
    ACTION_GRAPH_LAUNCH, /* a: the executable graph */
    ACTION_STREAM_DESTROY,
    ACTION_EVENT_DESTROY, /* a: the event */
    ACTION_GRAPH_DESTROY, /* a: the graph */
    ACTION_EXEC_DESTROY,  /* a: the executable graph */
    ACTION_UNLOAD,        /* kernels go, and their handles may come again */
    /* after a call that succeeded */
    ACTION_RECORD,     /* a: the event, or the address of a value that is written */
    ACTION_WAIT,       /* a: likewise */
    ACTION_EVENT_OVER, /* a: the event */
    ACTION_STREAM_OVER,
    ACTION_DEVICE_OVER,   /* a: the context, or nowhere: the current one */
    ACTION_STREAM_CREATE, /* a: address of the stream, b: its flags */
    ACTION_CAPTURE_BEGIN,
    ACTION_CAPTURE_END, /* a: address of the graph; also after a call that failed */
    ACTION_INSTANTIATE, /* a: address of the executable graph, b: the graph */
    ACTION_UPDATE,      /* a: the executable graph, b: the graph */
    /* both */
    ACTION_OPERANDS_AND_WAIT, /* operands, and when it returns the host has waited for it */
    ACTION_RECTANGLE_AND_WAIT
} cupti_action;

#define ACTION_FIRST_AFTER ACTION_RECORD

/* CALL(name, number, action, the null stream is the thread's, offsets of: stream, a, b) */
#define CUPTI_CALLS(CALL)                                                                          \
    CALL(cuLaunchKernel, 307, KERNEL, 0, 40, 0, 48)                                                \
    CALL(cuLaunchKernel_ptsz, 442, KERNEL, 1, 40, 0, 48)                                           \
    CALL(cuLaunchKernelEx, 652, KERNEL_EX, 0, 0, 8, 16)                                            \
    CALL(cuLaunchKernelEx_ptsz, 653, KERNEL_EX, 1, 0, 8, 16)                                       \
    CALL(cuLaunchCooperativeKernel, 477, COOPERATIVE, 0, 40, 0, 48)                                \
    CALL(cuLaunchCooperativeKernel_ptsz, 478, COOPERATIVE, 1, 40, 0, 48)                           \
    CALL(cuMemcpyHtoD_v2, 276, FROM_HOST, 0, 255, 0, 255)                                          \
    CALL(cuMemcpyHtoD_v2_ptds, 397, FROM_HOST, 1, 255, 0, 255)                                     \
    CALL(cuMemcpyDtoH_v2, 278, OPERANDS_AND_WAIT, 0, 255, 8, 255)                                  \
    CALL(cuMemcpyDtoH_v2_ptds, 398, OPERANDS_AND_WAIT, 1, 255, 8, 255)                             \
    CALL(cuMemcpyDtoD_v2, 280, OPERANDS, 0, 255, 0, 8)                                             \
    CALL(cuMemcpyDtoD_v2_ptds, 399, OPERANDS, 1, 255, 0, 8)                                        \
    CALL(cuMemcpy, 305, OPERANDS_AND_WAIT, 0, 255, 0, 8)                                           \
    CALL(cuMemcpy_ptds, 408, OPERANDS_AND_WAIT, 1, 255, 0, 8)                                      \
    CALL(cuMemcpyPeer, 318, OPERANDS, 0, 255, 0, 16)                                               \
    CALL(cuMemcpyPeer_ptds, 409, OPERANDS, 1, 255, 0, 16)                                          \
    CALL(cuMemcpy2D_v2, 287, RECTANGLE_AND_WAIT, 0, 255, 0, 255)                                   \
    CALL(cuMemcpy2D_v2_ptds, 405, RECTANGLE_AND_WAIT, 1, 255, 0, 255)                              \
    CALL(cuMemcpy2DUnaligned_v2, 288, RECTANGLE_AND_WAIT, 0, 255, 0, 255)                          \
    CALL(cuMemcpy2DUnaligned_v2_ptds, 406, RECTANGLE_AND_WAIT, 1, 255, 0, 255)                     \
    CALL(cuMemcpyHtoDAsync_v2, 277, FROM_HOST, 0, 24, 0, 255)                                      \
    CALL(cuMemcpyHtoDAsync_v2_ptsz, 421, FROM_HOST, 1, 24, 0, 255)                                 \
    CALL(cuMemcpyDtoHAsync_v2, 279, OPERANDS, 0, 24, 8, 255)                                       \
    CALL(cuMemcpyDtoHAsync_v2_ptsz, 422, OPERANDS, 1, 24, 8, 255)                                  \
    CALL(cuMemcpyDtoDAsync_v2, 281, OPERANDS, 0, 24, 0, 8)                                         \
    CALL(cuMemcpyDtoDAsync_v2_ptsz, 423, OPERANDS, 1, 24, 0, 8)                                    \
    CALL(cuMemcpyAsync, 306, OPERANDS, 0, 24, 0, 8)                                                \
    CALL(cuMemcpyAsync_ptsz, 418, OPERANDS, 1, 24, 0, 8)                                           \
    CALL(cuMemcpyPeerAsync, 319, OPERANDS, 0, 40, 0, 16)                                           \
    CALL(cuMemcpyPeerAsync_ptsz, 426, OPERANDS, 1, 40, 0, 16)                                      \
    CALL(cuMemcpy2DAsync_v2, 289, RECTANGLE, 0, 8, 0, 255)                                         \
    CALL(cuMemcpy2DAsync_v2_ptsz, 424, RECTANGLE, 1, 8, 0, 255)                                    \
    CALL(cuMemsetD8_v2, 249, OPERANDS, 0, 255, 0, 255)                                             \
    CALL(cuMemsetD8_v2_ptds, 411, OPERANDS, 1, 255, 0, 255)                                        \
    CALL(cuMemsetD16_v2, 250, OPERANDS, 0, 255, 0, 255)                                            \
    CALL(cuMemsetD16_v2_ptds, 412, OPERANDS, 1, 255, 0, 255)                                       \
    CALL(cuMemsetD32_v2, 251, OPERANDS, 0, 255, 0, 255)                                            \
    CALL(cuMemsetD32_v2_ptds, 413, OPERANDS, 1, 255, 0, 255)                                       \
    CALL(cuMemsetD8Async, 216, OPERANDS, 0, 24, 0, 255)                                            \
    CALL(cuMemsetD8Async_ptsz, 428, OPERANDS, 1, 24, 0, 255)                                       \
    CALL(cuMemsetD16Async, 218, OPERANDS, 0, 24, 0, 255)                                           \
    CALL(cuMemsetD16Async_ptsz, 429, OPERANDS, 1, 24, 0, 255)                                      \
    CALL(cuMemsetD32Async, 220, OPERANDS, 0, 24, 0, 255)                                           \
    CALL(cuMemsetD32Async_ptsz, 430, OPERANDS, 1, 24, 0, 255)                                      \
    CALL(cuMemsetD2D8Async, 222, OPERANDS, 0, 40, 0, 255)                                          \
    CALL(cuMemsetD2D8Async_ptsz, 431, OPERANDS, 1, 40, 0, 255)                                     \
    CALL(cuMemsetD2D16Async, 224, OPERANDS, 0, 40, 0, 255)                                         \
    CALL(cuMemsetD2D16Async_ptsz, 432, OPERANDS, 1, 40, 0, 255)                                    \
    CALL(cuMemsetD2D32Async, 226, OPERANDS, 0, 40, 0, 255)                                         \
    CALL(cuMemsetD2D32Async_ptsz, 433, OPERANDS, 1, 40, 0, 255)                                    \
    CALL(cuGraphLaunch, 514, GRAPH_LAUNCH, 0, 8, 0, 255)                                           \
    CALL(cuGraphLaunch_ptsz, 515, GRAPH_LAUNCH, 1, 8, 0, 255)                                      \
    CALL(cuStreamDestroy_v2, 326, STREAM_DESTROY, 0, 0, 255, 255)                                  \
    CALL(cuEventDestroy_v2, 325, EVENT_DESTROY, 0, 255, 0, 255)                                    \
    CALL(cuGraphDestroy, 517, GRAPH_DESTROY, 0, 255, 0, 255)                                       \
    CALL(cuGraphExecDestroy, 516, EXEC_DESTROY, 0, 255, 0, 255)                                    \
    CALL(cuModuleUnload, 22, UNLOAD, 0, 255, 255, 255)                                             \
    CALL(cuLibraryUnload, 680, UNLOAD, 0, 255, 255, 255)                                           \
    CALL(cuEventRecord, 119, RECORD, 0, 8, 0, 255)                                                 \
    CALL(cuEventRecord_ptsz, 441, RECORD, 1, 8, 0, 255)                                            \
    CALL(cuEventRecordWithFlags, 587, RECORD, 0, 8, 0, 255)                                        \
    CALL(cuEventRecordWithFlags_ptsz, 588, RECORD, 1, 8, 0, 255)                                   \
    CALL(cuStreamWriteValue32_v2, 663, RECORD, 0, 0, 8, 255)                                       \
    CALL(cuStreamWriteValue32_v2_ptsz, 664, RECORD, 1, 0, 8, 255)                                  \
    CALL(cuStreamWriteValue64_v2, 665, RECORD, 0, 0, 8, 255)                                       \
    CALL(cuStreamWriteValue64_v2_ptsz, 666, RECORD, 1, 0, 8, 255)                                  \
    CALL(cuStreamWaitEvent, 295, WAIT, 0, 0, 8, 255)                                               \
    CALL(cuStreamWaitEvent_ptsz, 436, WAIT, 1, 0, 8, 255)                                          \
    CALL(cuStreamWaitValue32_v2, 659, WAIT, 0, 0, 8, 255)                                          \
    CALL(cuStreamWaitValue32_v2_ptsz, 660, WAIT, 1, 0, 8, 255)                                     \
    CALL(cuStreamWaitValue64_v2, 661, WAIT, 0, 0, 8, 255)                                          \
    CALL(cuStreamWaitValue64_v2_ptsz, 662, WAIT, 1, 0, 8, 255)                                     \
    CALL(cuEventSynchronize, 121, EVENT_OVER, 0, 255, 0, 255)                                      \
    CALL(cuEventQuery, 120, EVENT_OVER, 0, 255, 0, 255)                                            \
    CALL(cuStreamSynchronize, 126, STREAM_OVER, 0, 0, 255, 255)                                    \
    CALL(cuStreamSynchronize_ptsz, 440, STREAM_OVER, 1, 0, 255, 255)                               \
    CALL(cuStreamQuery, 125, STREAM_OVER, 0, 0, 255, 255)                                          \
    CALL(cuStreamQuery_ptsz, 439, STREAM_OVER, 1, 0, 255, 255)                                     \
    CALL(cuCtxSynchronize, 17, DEVICE_OVER, 0, 255, 255, 255)                                      \
    CALL(cuCtxSynchronize_v2, 800, DEVICE_OVER, 0, 255, 0, 255)                                    \
    CALL(cuMemFree_v2, 245, DEVICE_OVER, 0, 255, 255, 255)                                         \
    CALL(cuStreamCreate, 124, STREAM_CREATE, 0, 255, 0, 8)                                         \
    CALL(cuStreamCreateWithPriority, 367, STREAM_CREATE, 0, 255, 0, 8)                             \
    CALL(cuGreenCtxStreamCreate, 758, STREAM_CREATE, 0, 255, 0, 16)                                \
    CALL(cuStreamBeginCapture, 495, CAPTURE_BEGIN, 0, 0, 255, 255)                                 \
    CALL(cuStreamBeginCapture_ptsz, 496, CAPTURE_BEGIN, 1, 0, 255, 255)                            \
    CALL(cuStreamBeginCapture_v2, 539, CAPTURE_BEGIN, 0, 0, 255, 255)                              \
    CALL(cuStreamBeginCapture_v2_ptsz, 540, CAPTURE_BEGIN, 1, 0, 255, 255)                         \
    CALL(cuStreamBeginCaptureToGraph, 720, CAPTURE_BEGIN, 0, 0, 255, 255)                          \
    CALL(cuStreamBeginCaptureToGraph_ptsz, 721, CAPTURE_BEGIN, 1, 0, 255, 255)                     \
    CALL(cuStreamEndCapture, 497, CAPTURE_END, 0, 0, 8, 255)                                       \
    CALL(cuStreamEndCapture_ptsz, 498, CAPTURE_END, 1, 0, 8, 255)                                  \
    CALL(cuGraphInstantiate, 513, INSTANTIATE, 0, 255, 0, 8)                                       \
    CALL(cuGraphInstantiate_v2, 578, INSTANTIATE, 0, 255, 0, 8)                                    \
    CALL(cuGraphInstantiateWithFlags, 643, INSTANTIATE, 0, 255, 0, 8)                              \
    CALL(cuGraphInstantiateWithParams, 656, INSTANTIATE, 0, 255, 0, 8)                             \
    CALL(cuGraphInstantiateWithParams_ptsz, 657, INSTANTIATE, 0, 255, 0, 8)                        \
    CALL(cuGraphExecUpdate, 561, UPDATE, 0, 255, 0, 8)                                             \
    CALL(cuGraphExecUpdate_v2, 696, UPDATE, 0, 255, 0, 8)

/* Within what those calls point to. */
#define CUPTI_CONFIG_STREAM_AT     32 /* CUlaunchConfig.hStream */
#define CUPTI_FROM_HOST_AT         8  /* cuMemcpyHtoD.srcHost */
#define CUPTI_FROM_HOST_BYTES_AT   16
#define CUPTI_RECTANGLE_TYPE_AT    16 /* CUDA_MEMCPY2D.srcMemoryType */
#define CUPTI_RECTANGLE_FROM_AT    32 /* .srcDevice */
#define CUPTI_RECTANGLE_TO_TYPE_AT 72
#define CUPTI_RECTANGLE_TO_AT      88

#endif
