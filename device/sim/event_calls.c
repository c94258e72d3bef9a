/* Events. A record stores the stream and its tail; the event is complete when the stream's head has
 * got there. Only an event that keeps time costs a queue entry, and only on a busy stream. */
#include "event_calls.h"

#include "calls.h"
#include "capture.h"
#include "contexts.h"
#include "events.h"
#include "happens_before.h"
#include "host_clock.h"
#include "push.h"
#include "streams.h"
#include "waiting.h"

#include <stdlib.h>

enum { EVENT_FLAGS = 0x7 };

static int create(sim_call *call, cudaEvent_t *out, unsigned flags)
{
    if (!out) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the new event");
    }
    if ((flags & ~(unsigned)EVENT_FLAGS) ||
        ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming))) {
        return call_misuse(call, cudaErrorInvalidValue, "unknown or contradictory event flags");
    }
    const event *e = event_new(call->thread->device, flags);
    if (!e) {
        return cudaErrorMemoryAllocation;
    }
    *out = e->handle;
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaEventCreate(cudaEvent_t *out)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventCreate)) {
        call.record.result = create(&call, out, cudaEventDefault);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventCreateWithFlags)) {
        call.record.result = create(&call, out, flags);
    }
    return (cudaError_t)call_leave(&call);
}

static int destroy(sim_call *call, cudaEvent_t handle)
{
    event *e = event_of(call, handle);
    if (!e) {
        return cudaErrorInvalidResourceHandle;
    }
    event_delete(e);
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaEventDestroy(cudaEvent_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventDestroy)) {
        call.record.result = destroy(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

/* The event stands for the nodes that the capture's next work would depend on. */
static int record_in_capture(event *e, const stream *s)
{
    uint32_t *after = malloc((s->capture_after_count + 1) * sizeof *after);
    if (!after) {
        return cudaErrorMemoryAllocation;
    }
    for (uint32_t i = 0; i < s->capture_after_count; i++) {
        after[i] = s->capture_after[i];
    }
    event_forget(e);
    e->capture_id = capture_id_of(s);
    e->capture_after = after;
    e->capture_count = s->capture_after_count;
    return cudaSuccess;
}

static int record_on(event *e, stream *s)
{
    if (!stream_order_default(s) ||
        (s->head < s->tail && event_keeps_time(e) &&
         !stream_push(s, (entry){.kind = ENTRY_RECORD, .event = e->handle}))) {
        return cudaErrorMemoryAllocation;
    }
    if (e->capture_id) {
        event_forget(e);
    }
    point_store(&e->at, stream_point(s));
    e->end_ns = sim.now_ns;
    return cudaSuccess;
}

static int record(sim_call *call, cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags)
{
    event *e = event_of(call, handle);
    stream *s = e ? stream_of(call, stream_handle) : NULL;
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (flags & ~(unsigned)cudaEventRecordExternal ||
        (flags == cudaEventRecordExternal && !s->capture)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "cudaEventRecordExternal outside of a capture, or unknown flags");
    }
    if (e->device != s->device) {
        return call_misuse_of(call, cudaErrorInvalidResourceHandle, "other_device",
                              "the event and the stream belong to different devices");
    }
    int refused = capture_check_work(call, s);
    if (refused) {
        return refused;
    }
    if (flags == cudaEventRecordExternal) {
        entry node = {.kind = ENTRY_RECORD, .event = handle};
        return stream_push(s, node) ? cudaSuccess : cudaErrorMemoryAllocation;
    }
    return s->capture ? record_in_capture(e, s) : record_on(e, s);
}

/* A node of a launched graph records the event on `s`. */
int event_record_by_graph(cudaEvent_t handle, stream *s)
{
    event *e = event_find(handle);
    return e ? record_on(e, s) : cudaSuccess;
}

/* A node of a launched graph makes `s` wait for what the event stands for now. */
int event_wait_by_graph(cudaEvent_t handle, stream *s)
{
    const event *e = event_find(handle);
    return !e || stream_follow(s, e->at) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t gmd_sim_cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventRecord)) {
        call.record.result = record(&call, handle, stream_handle, cudaEventRecordDefault);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle,
                                             unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventRecordWithFlags)) {
        call.record.result = record(&call, handle, stream_handle, flags);
    }
    return (cudaError_t)call_leave(&call);
}

/* What an event has answered or been waited for, the host knows. */
static bool learn_if_complete(const event *e)
{
    bool is_over = event_is_complete(e);
    if (is_over) {
        host_learn(e->at);
    }
    return is_over;
}

/* The host may not ask for an event that a capture holds, nor for any while one forbids it. */
static int check_asking(sim_call *call, const event *e)
{
    return e->capture_id || capture_is_any() ? capture_check_event(call, e->capture_id) : 0;
}

static int query(sim_call *call, cudaEvent_t handle)
{
    const event *e = event_of(call, handle);
    if (!e) {
        return cudaErrorInvalidResourceHandle;
    }
    int refused = check_asking(call, e);
    if (refused) {
        return refused;
    }
    return learn_if_complete(e) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t gmd_sim_cudaEventQuery(cudaEvent_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventQuery)) {
        call.record.result = query(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

CUresult gmd_sim_cuEventQuery(CUevent handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuEventQuery)) {
        call.record.result =
            call.thread->has_context ? query(&call, handle) : (int)CUDA_ERROR_INVALID_CONTEXT;
    }
    return (CUresult)call_leave(&call);
}

static int synchronize(sim_call *call, cudaEvent_t handle)
{
    const event *e = event_of(call, handle);
    if (!e) {
        return cudaErrorInvalidResourceHandle;
    }
    int refused = check_asking(call, e);
    if (refused || !e->at.on) {
        return refused;
    }
    host_wait(e->at);
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaEventSynchronize(cudaEvent_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventSynchronize)) {
        call.record.result = synchronize(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

static int elapsed(sim_call *call, float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    const event *first = event_of(call, start);
    const event *last = first ? event_of(call, end) : NULL;
    if (!last) {
        return cudaErrorInvalidResourceHandle;
    }
    if (first->capture_id || last->capture_id) {
        return call_misuse(call, cudaErrorCapturedEvent, "an event was recorded in a capture");
    }
    if (!milliseconds) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the time");
    }
    if (!event_keeps_time(first) || !event_keeps_time(last) || !first->at.on || !last->at.on ||
        first->device != last->device) {
        return call_misuse_of(
            call, cudaErrorInvalidResourceHandle, "no_time",
            "an event keeps no time, was never recorded, or is of another device");
    }
    if (!learn_if_complete(first) || !learn_if_complete(last)) {
        return cudaErrorNotReady;
    }
    *milliseconds = (float)(((double)last->end_ns - (double)first->end_ns) / 1e6);
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventElapsedTime)) {
        call.record.result = elapsed(&call, milliseconds, start, end);
    }
    return (cudaError_t)call_leave(&call);
}

static int wait_event(sim_call *call, cudaStream_t stream_handle, cudaEvent_t handle,
                      unsigned flags)
{
    stream *s = stream_of(call, stream_handle);
    const event *e = s ? event_of(call, handle) : NULL;
    if (!e) {
        return cudaErrorInvalidResourceHandle;
    }
    if (flags & ~(unsigned)cudaEventWaitExternal ||
        (flags == cudaEventWaitExternal && !s->capture)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "cudaEventWaitExternal outside of a capture, or unknown flags");
    }
    if (flags == cudaEventWaitExternal) {
        entry node = {.kind = ENTRY_WAIT_EVENT, .event = handle};
        return stream_push(s, node) ? cudaSuccess : cudaErrorMemoryAllocation;
    }
    int refused = capture_check_work(call, s);
    if (refused) {
        return refused;
    }
    if (e->capture_id) {
        return capture_wait(call, s, e->capture_id, e->capture_after, e->capture_count);
    }
    if (s->capture && e->at.on) {
        return capture_refuse(call, s, cudaErrorStreamCaptureIsolation,
                              "a capturing stream waits for an event of work outside the capture");
    }
    return stream_order_default(s) && stream_follow(s, e->at) ? cudaSuccess
                                                              : cudaErrorMemoryAllocation;
}

cudaError_t gmd_sim_cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle,
                                        unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamWaitEvent)) {
        call.record.result = wait_event(&call, stream_handle, handle, flags);
    }
    return (cudaError_t)call_leave(&call);
}

/* All that is queued on the device: what a stream that waits for every other one would be after. */
static int record_all(event *e)
{
    stream *all = stream_create(e->device, cudaStreamNonBlocking, 0);
    bool is_recorded = all;
    for (uint32_t id = 0; is_recorded && id < streams.stream_structs; id++) {
        const stream *s = streams.all[id];
        is_recorded = s == all || s->device != e->device || stream_follow(all, stream_point(s));
    }
    is_recorded = is_recorded && record_on(e, all) == cudaSuccess;
    if (all) {
        stream_destroy(all);
    }
    return is_recorded ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static int record_context(sim_call *call, CUcontext context, CUevent handle)
{
    int device = context_device(call, context);
    event *e = device < 0 ? NULL : event_of(call, handle);
    if (!e || e->device != device) {
        return call_misuse(call, CUDA_ERROR_INVALID_HANDLE,
                           "the context or the event is none, or the event is another context's");
    }
    if (capture_stop(device)) { /* as an H200 does, although it is only a question */
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return record_all(e);
}

SIM_DRIVER_CALL(cuCtxRecordEvent, (CUcontext context, CUevent handle),
                record_context(&call, context, handle))

/* --- the driver's forms ------------------------------------------------------------------ */

SIM_DRIVER_CALL(cuEventCreate, (CUevent * out, unsigned flags), create(&call, out, flags))
SIM_DRIVER_CALL(cuEventDestroy_v2, (CUevent handle), destroy(&call, handle))
SIM_DRIVER_CALL(cuEventRecord, (CUevent handle, CUstream on), record(&call, handle, on, 0))
SIM_DRIVER_CALL(cuEventRecordWithFlags, (CUevent handle, CUstream on, unsigned flags),
                record(&call, handle, on, flags))
SIM_DRIVER_CALL(cuEventSynchronize, (CUevent handle), synchronize(&call, handle))
SIM_DRIVER_CALL(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end),
                elapsed(&call, milliseconds, start, end))
SIM_DRIVER_CALL(cuEventElapsedTime_v2, (float *milliseconds, CUevent start, CUevent end),
                milliseconds
                    ? elapsed(&call, milliseconds, start, end)
                    : call_misuse(&call, CUDA_ERROR_INVALID_HANDLE, "no place for the time"))
SIM_DRIVER_CALL(cuStreamWaitEvent, (CUstream on, CUevent handle, unsigned flags),
                wait_event(&call, on, handle, flags))
