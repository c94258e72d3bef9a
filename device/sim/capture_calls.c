/* The functions that capture streams. */
#include "calls.h"
#include "capture.h"

static int exchange_mode(sim_call *call, enum cudaStreamCaptureMode *mode)
{
    if (!mode || *mode > cudaStreamCaptureModeRelaxed) {
        return call_misuse(call, cudaErrorInvalidValue, "an unknown mode of capture");
    }
    enum cudaStreamCaptureMode before = call->thread->capture_mode;
    call->thread->capture_mode = *mode;
    *mode = before;
    return cudaSuccess;
}

SIM_CALL(cudaStreamBeginCapture, (cudaStream_t handle, enum cudaStreamCaptureMode mode),
         capture_begin(&call, handle, mode))

cudaError_t gmd_sim_cudaStreamBeginCaptureToGraph(cudaStream_t handle, cudaGraph_t into,
                                                  const cudaGraphNode_t *nodes,
                                                  const cudaGraphEdgeData *edges, size_t count,
                                                  enum cudaStreamCaptureMode mode)
{
    sim_call call;
    (void)edges;
    if (call_enter(&call, CALL_cudaStreamBeginCaptureToGraph)) {
        call.record.result = capture_begin_to_graph(&call, handle, into, nodes, count, mode);
    }
    return (cudaError_t)call_leave(&call);
}

SIM_CALL(cudaStreamEndCapture, (cudaStream_t handle, cudaGraph_t *out),
         capture_end(&call, handle, out))
SIM_CALL(cudaStreamIsCapturing, (cudaStream_t handle, enum cudaStreamCaptureStatus *status),
         capture_status(&call, handle, status))
SIM_CALL(cudaStreamGetCaptureInfo,
         (cudaStream_t handle, enum cudaStreamCaptureStatus *status, unsigned long long *id,
          cudaGraph_t *into, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
          size_t *count),
         capture_get_info(&call, handle, &(capture_info){status, id, into, nodes, edges, count}))

cudaError_t gmd_sim_cudaStreamUpdateCaptureDependencies(cudaStream_t handle, cudaGraphNode_t *nodes,
                                                        const cudaGraphEdgeData *edges,
                                                        size_t count, unsigned flags)
{
    sim_call call;
    (void)edges;
    if (call_enter(&call, CALL_cudaStreamUpdateCaptureDependencies)) {
        call.record.result = capture_update(&call, handle, nodes, count, flags);
    }
    return (cudaError_t)call_leave(&call);
}

SIM_CALL(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode),
         exchange_mode(&call, mode))

/* --- the driver's forms ------------------------------------------------------------------ */

SIM_DRIVER_CALL(cuStreamIsCapturing, (CUstream handle, CUstreamCaptureStatus *status),
                capture_status(&call, handle, (enum cudaStreamCaptureStatus *)status))

CUresult gmd_sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    sim_call call;
    if (call_enter(&call, CALL_cuThreadExchangeStreamCaptureMode)) {
        call.record.result = exchange_mode(&call, (enum cudaStreamCaptureMode *)mode);
    }
    return (CUresult)call_leave(&call);
}
