/* The functions on streams, and kernels. */
#include "queue.h"

/* Hopper's range: 0 is the lowest priority, -5 the highest; others are clamped to it. */
enum { PRIORITY_LEAST = 0, PRIORITY_GREATEST = -5 };

static int create(sim_call *call, cudaStream_t *out, unsigned flags, int priority)
{
    if (!out) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the new stream");
    }
    if (flags & ~(unsigned)cudaStreamNonBlocking) {
        return call_misuse(call, cudaErrorInvalidValue, "unknown stream flags");
    }
    priority = priority > PRIORITY_LEAST      ? PRIORITY_LEAST
               : priority < PRIORITY_GREATEST ? PRIORITY_GREATEST
                                              : priority;
    stream *s = stream_create(call->thread->device, flags, priority);
    if (!s) {
        return cudaErrorMemoryAllocation;
    }
    *out = s->handle;
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaStreamCreate(cudaStream_t *out)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamCreate)) {
        call.record.result = create(&call, out, cudaStreamDefault, 0);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamCreateWithFlags)) {
        call.record.result = create(&call, out, flags, 0);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags,
                                                 int priority)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamCreateWithPriority)) {
        call.record.result = create(&call, out, flags, priority);
    }
    return (cudaError_t)call_leave(&call);
}

static int priority_range(int *least, int *greatest)
{
    if (least) {
        *least = PRIORITY_LEAST;
    }
    if (greatest) {
        *greatest = PRIORITY_GREATEST;
    }
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceGetStreamPriorityRange)) {
        call.record.result = priority_range(least, greatest);
    }
    return (cudaError_t)call_leave(&call);
}

static int get_flags(sim_call *call, cudaStream_t handle, unsigned *flags)
{
    const stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (!flags) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the stream's flags");
    }
    *flags = s->flags;
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaStreamGetFlags(cudaStream_t handle, unsigned int *flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamGetFlags)) {
        call.record.result = get_flags(&call, handle, flags);
    }
    return (cudaError_t)call_leave(&call);
}

static int get_priority(sim_call *call, cudaStream_t handle, int *priority)
{
    const stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (!priority) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the stream's priority");
    }
    *priority = s->priority;
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamGetPriority)) {
        call.record.result = get_priority(&call, handle, priority);
    }
    return (cudaError_t)call_leave(&call);
}

/* Returns at once; queued work still completes. */
static int destroy(sim_call *call, cudaStream_t handle)
{
    if (handle == NULL || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
        return call_misuse(call, cudaErrorInvalidResourceHandle,
                           "a default stream cannot be destroyed");
    }
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    stream_destroy(s);
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaStreamDestroy(cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamDestroy)) {
        call.record.result = destroy(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

/* Asking about the default stream asks about all that its next work would wait for. */
static int query(sim_call *call, cudaStream_t handle)
{
    const stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (!stream_is_legacy(s)) {
        if (s->head < s->tail) {
            return cudaErrorNotReady;
        }
        host_learn(stream_point(s));
        return cudaSuccess;
    }
    if (!streams_are_idle(s->device, STREAMS_BLOCKING)) {
        return cudaErrorNotReady;
    }
    host_learn_group(s->device, STREAMS_BLOCKING);
    return cudaSuccess;
}

static int synchronize(sim_call *call, cudaStream_t handle)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (stream_is_legacy(s)) {
        streams_force_group(s->device, STREAMS_BLOCKING);
        host_learn_group(s->device, STREAMS_BLOCKING);
    } else {
        stream_force(s, s->tail);
        host_learn(stream_point(s));
    }
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaStreamQuery(cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamQuery)) {
        call.record.result = query(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaStreamSynchronize(cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamSynchronize)) {
        call.record.result = synchronize(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

CUresult gmd_sim_cuStreamQuery(CUstream handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuStreamQuery)) {
        call.record.result =
            call.thread->has_context ? query(&call, handle) : (int)CUDA_ERROR_INVALID_CONTEXT;
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuStreamSynchronize(CUstream handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuStreamSynchronize)) {
        call.record.result =
            call.thread->has_context ? synchronize(&call, handle) : (int)CUDA_ERROR_INVALID_CONTEXT;
    }
    return (CUresult)call_leave(&call);
}

cudaError_t gmd_sim_cudaDeviceSynchronize(void)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceSynchronize)) {
        host_wait_device(call.thread->device);
    }
    return (cudaError_t)call_leave(&call);
}

/* --- control ----------------------------------------------------------------------------- */

static bool are_live(const gmd_sim_access *accesses, size_t count, int device)
{
    uint64_t bad;
    for (size_t i = 0; i < count; i++) {
        if (!memory_is_usable(accesses[i].address, accesses[i].size, device, &bad)) {
            return false;
        }
    }
    return true;
}

static int launch(sim_call *call, cudaStream_t handle, uint64_t duration_ns,
                  const gmd_sim_access *accesses, size_t count)
{
    if (!accesses && count) {
        return call_misuse(call, cudaErrorInvalidValue, "accesses are counted but not given");
    }
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    bool were_live = are_live(accesses, count, s->device); /* before it may run, and break more */
    entry e = {.kind = ENTRY_KERNEL, .duration_ns = duration_ns};
    if (!accesses_keep(&e.accesses, accesses, count)) {
        return cudaErrorMemoryAllocation;
    }
    if (!stream_order_default(s) || !stream_push(s, e)) {
        accesses_drop(&e.accesses);
        return cudaErrorMemoryAllocation;
    }
    return were_live
               ? cudaSuccess
               : call_misuse(call, cudaSuccess, "a kernel touches memory that is not allocated");
}

cudaError_t gmd_sim_launch(cudaStream_t handle, uint64_t duration_ns,
                           const gmd_sim_access *accesses, size_t access_count)
{
    sim_call call;
    if (call_enter(&call, CALL_kernel)) {
        call.record.result = launch(&call, handle, duration_ns, accesses, access_count);
    }
    return (cudaError_t)call_leave(&call);
}

uint64_t gmd_sim_pending(cudaStream_t handle)
{
    sim_lock();
    sim_start();
    const stream *s = stream_find(sim_this_thread(), handle);
    uint64_t pending = s ? stream_pending(s) : 0;
    sim_unlock();
    return pending;
}
