/* The functions on streams, and kernels. */
#include "accesses.h"
#include "calls.h"
#include "capture.h"
#include "contexts.h"
#include "happens_before.h"
#include "host_clock.h"
#include "marks.h"
#include "memory.h"
#include "point.h"
#include "push.h"
#include "queue.h"
#include "schedule.h"
#include "streams.h"
#include "waiting.h"

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

/* Finds the stream that a property is asked of; `place` is for the answer. A stream that captures
 * tells nothing. */
static int ask_stream(sim_call *call, cudaStream_t handle, const void *place, const char *refusal,
                      stream **s)
{
    *s = stream_of(call, handle);
    if (!*s) {
        return cudaErrorInvalidResourceHandle;
    }
    if ((*s)->capture) {
        return capture_check_stream(call, *s);
    }
    return place ? cudaSuccess : call_misuse(call, cudaErrorInvalidValue, refusal);
}

static int get_flags(sim_call *call, cudaStream_t handle, unsigned *flags)
{
    stream *s;
    int refused = ask_stream(call, handle, flags, "no place for the stream's flags", &s);
    if (!refused) {
        *flags = s->flags;
    }
    return refused;
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
    capture_leave_stream(s);
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
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    int refused = capture_is_any() ? capture_check_stream(call, s) : 0;
    if (refused) {
        return refused;
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
    int refused = capture_is_any() ? capture_check_stream(call, s) : 0;
    if (refused) {
        return refused;
    }
    if (stream_is_legacy(s)) {
        host_wait_group(s->device, STREAMS_BLOCKING);
    } else {
        host_wait(stream_point(s));
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
        call.record.result = capture_is_any() ? capture_check_device(&call) : 0;
        if (!call.record.result) {
            host_wait_device(call.thread->device);
        }
    }
    return (cudaError_t)call_leave(&call);
}

/* --- what a stream is -------------------------------------------------------------------- */

/* The legacy streams are the first structures, so that ids start with them. */
static int get_id(sim_call *call, cudaStream_t handle, unsigned long long *id)
{
    stream *s;
    int refused = ask_stream(call, handle, id, "no place for the stream's id", &s);
    if (!refused) {
        *id = s->handle ? (unsigned long long)(uintptr_t)s->handle : s->progress.id + 1;
    }
    return refused;
}

static int get_device(sim_call *call, cudaStream_t handle, int *device)
{
    stream *s;
    int refused = ask_stream(call, handle, device, "no place for the stream's device", &s);
    if (!refused) {
        *device = s->device;
    }
    return refused;
}

/* The attributes that can be copied are hints for caches and scheduling: nothing here. */
static int copy_attributes(sim_call *call, cudaStream_t to, cudaStream_t from)
{
    return stream_of(call, to) && stream_of(call, from) ? cudaSuccess
                                                        : cudaErrorInvalidResourceHandle;
}

static int attach(sim_call *call)
{
    return call_misuse(call, cudaErrorInvalidValue,
                       "memory is attached to a stream that is not managed memory");
}

SIM_CALL(cudaStreamGetId, (cudaStream_t handle, unsigned long long *id), get_id(&call, handle, id))
SIM_CALL(cudaStreamGetDevice, (cudaStream_t handle, int *device), get_device(&call, handle, device))
SIM_CALL(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from),
         copy_attributes(&call, to, from))

cudaError_t gmd_sim_cudaStreamAttachMemAsync(cudaStream_t handle, void *pointer, size_t size,
                                             unsigned flags)
{
    sim_call call;
    (void)handle, (void)pointer, (void)size, (void)flags;
    if (call_enter(&call, CALL_cudaStreamAttachMemAsync)) {
        call.record.result = attach(&call);
    }
    return (cudaError_t)call_leave(&call);
}

/* --- host functions ---------------------------------------------------------------------- */

static int launch_host(sim_call *call, cudaStream_t handle, cudaHostFn_t function,
                       cudaStreamCallback_t callback, void *data)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (!function && !callback) {
        return call_misuse(call, cudaErrorInvalidValue, "no host function");
    }
    int refused = capture_check_work(call, s);
    if (refused) {
        return refused;
    }
    if (callback && s->capture) {
        return capture_refuse(call, s, cudaErrorStreamCaptureUnsupported,
                              "a callback cannot be captured; cudaLaunchHostFunc can");
    }
    entry e = {
        .kind = ENTRY_HOST,
        .host = {.function = function, .callback = callback, .data = data, .stream = handle}};
    bool is_queued = s->capture != NULL || stream_order_default(s);
    if (is_queued && !s->capture) {
        e.host.before = gmd_past_keep(s->before);
    }
    is_queued = is_queued && stream_push(s, e);
    if (!is_queued) {
        entry_drop(&e);
    }
    return is_queued ? cudaSuccess : cudaErrorMemoryAllocation;
}

static int add_callback(sim_call *call, cudaStream_t handle, cudaStreamCallback_t callback,
                        void *data, unsigned flags)
{
    return flags ? call_misuse(call, cudaErrorInvalidValue, "unknown flags of a callback")
                 : launch_host(call, handle, NULL, callback, data);
}

SIM_CALL(cudaLaunchHostFunc, (cudaStream_t handle, cudaHostFn_t function, void *data),
         launch_host(&call, handle, function, NULL, data))
SIM_CALL(cudaStreamAddCallback,
         (cudaStream_t handle, cudaStreamCallback_t callback, void *data, unsigned flags),
         add_callback(&call, handle, callback, data, flags))

/* --- the driver's forms ------------------------------------------------------------------ */

static int get_context(sim_call *call, cudaStream_t handle, CUcontext *context)
{
    const stream *s = stream_of(call, handle);
    if (!s) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!context) {
        return call_misuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the context");
    }
    *context = context_of(s->device);
    return CUDA_SUCCESS;
}

SIM_DRIVER_CALL(cuStreamCreate, (CUstream * out, unsigned flags), create(&call, out, flags, 0))
SIM_DRIVER_CALL(cuStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority),
                create(&call, out, flags, priority))
SIM_DRIVER_CALL(cuStreamDestroy_v2, (CUstream handle), destroy(&call, handle))
SIM_DRIVER_CALL(cuStreamGetFlags, (CUstream handle, unsigned *flags),
                get_flags(&call, handle, flags))
SIM_DRIVER_CALL(cuStreamGetPriority, (CUstream handle, int *priority),
                get_priority(&call, handle, priority))
SIM_DRIVER_CALL(cuStreamGetId, (CUstream handle, unsigned long long *id), get_id(&call, handle, id))
SIM_DRIVER_CALL(cuStreamGetDevice, (CUstream handle, CUdevice *device),
                get_device(&call, handle, device))
SIM_DRIVER_CALL(cuStreamGetCtx, (CUstream handle, CUcontext *context),
                get_context(&call, handle, context))
SIM_DRIVER_CALL(cuLaunchHostFunc, (CUstream handle, CUhostFn function, void *data),
                launch_host(&call, handle, function, NULL, data))
SIM_DRIVER_CALL(cuStreamAddCallback,
                (CUstream handle, CUstreamCallback callback, void *data, unsigned flags),
                add_callback(&call, handle, (cudaStreamCallback_t)callback, data, flags))

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
                  const gmd_sim_access *accesses, size_t count, uint64_t mark)
{
    if (!accesses && count) {
        return call_misuse(call, cudaErrorInvalidValue, "accesses are counted but not given");
    }
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    int refused = capture_check_work(call, s);
    if (refused) {
        return refused;
    }
    bool were_live = are_live(accesses, count, s->device); /* before it may run, and break more */
    entry e = {.kind = ENTRY_KERNEL, .duration_ns = duration_ns};
    if (!accesses_keep(&e.accesses, accesses, count)) {
        return cudaErrorMemoryAllocation;
    }
    e.accesses.mark = mark;
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
        call.record.result = launch(&call, handle, duration_ns, accesses, access_count, 0);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_launch_marking(cudaStream_t handle, uint64_t duration_ns, uint64_t address,
                                   uint64_t size, uint64_t mark)
{
    sim_call call;
    gmd_sim_access access = {address, size, true};
    if (call_enter(&call, CALL_kernel)) {
        marks_start();
        call.record.result = launch(&call, handle, duration_ns, &access, 1, mark);
    }
    return (cudaError_t)call_leave(&call);
}
