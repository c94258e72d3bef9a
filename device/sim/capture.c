/* Capture of streams into graphs: what there is to know of it where no stream is ever capturing. */
#include "state.h"

static int status_of(sim_call *call, cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    if (!status) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the status");
    }
    if (!stream_of(call, handle)) {
        return cudaErrorInvalidResourceHandle;
    }
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamIsCapturing)) {
        call.record.result = status_of(&call, handle, status);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaStreamGetCaptureInfo(cudaStream_t handle,
                                             enum cudaStreamCaptureStatus *status,
                                             unsigned long long *id, cudaGraph_t *graph,
                                             const cudaGraphNode_t **dependencies,
                                             const cudaGraphEdgeData **edges, size_t *count)
{
    sim_call call;
    (void)id; /* these are written while capturing only */
    (void)graph;
    (void)dependencies;
    (void)edges;
    (void)count;
    if (call_enter(&call, CALL_cudaStreamGetCaptureInfo)) {
        call.record.result = status_of(&call, handle, status);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaThreadExchangeStreamCaptureMode)) {
        if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed) {
            call.record.result =
                call_misuse(&call, cudaErrorInvalidValue, "no mode, or an unknown one");
        } else {
            enum cudaStreamCaptureMode old = call.thread->capture_mode;
            call.thread->capture_mode = *mode;
            *mode = old;
        }
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaGraphNodeGetDependencies(cudaGraphNode_t node,
                                                 cudaGraphNode_t *dependencies,
                                                 cudaGraphEdgeData *edges, size_t *count)
{
    sim_call call;
    (void)node;
    (void)dependencies;
    (void)edges;
    (void)count;
    if (call_enter(&call, CALL_cudaGraphNodeGetDependencies)) {
        call.record.result =
            call_misuse(&call, cudaErrorInvalidValue, "the node belongs to no graph");
    }
    return (cudaError_t)call_leave(&call);
}
