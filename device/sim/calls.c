#include "calls.h"

#include "call_counts.h"
#include "capture.h"
#include "contexts.h"
#include "control.h"
#include "host_functions.h"
#include "lock.h"
#include "schedule.h"
#include "validity.h"

#include "gmd_assert.h"

#include <stdatomic.h>
#include <string.h>

static struct {
    gmd_sim_observer *observer;
    void *context;
} observing;

/* Looked at before the lock is taken: a hook that waits for another thread must not hold it. */
static _Atomic(gmd_sim_yield *) yield_hook;
static void *_Atomic yield_context;

static _Thread_local bool is_harness __attribute__((tls_model("initial-exec")));

static bool is_driver_call(call_id id)
{
    return id >= CALL_cuInit && id < CALL_kernel;
}

/* The runtime makes the current device's context on first use; these calls do not need one. */
static bool needs_context(call_id id)
{
    switch (id) {
    case CALL_cudaGetDevice:
    case CALL_cudaGetDeviceCount:
    case CALL_cudaGetDeviceProperties:
    case CALL_cudaDeviceCanAccessPeer:
    case CALL_cudaGetDriverEntryPoint:
    case CALL_cudaGetDriverEntryPointByVersion:
    case CALL_cudaThreadExchangeStreamCaptureMode:
    case CALL_cudaDeviceGetAttribute:
    case CALL_cudaRuntimeGetVersion:
    case CALL_cudaDriverGetVersion:
    case CALL_cudaGetLastError:
    case CALL_cudaPeekAtLastError:
    case CALL_cudaDeviceReset:
    case CALL_cudaSetDevice: /* of the new device: see there */
        return false;
    default:
        return !is_driver_call(id);
    }
}

/* On a device that is broken, all that needs its context fails. */
static bool fails_on_broken(call_id id)
{
    static const char *const prefixes[] = {"cuMem", "cuStream", "cuEvent", "cuLaunch", "cuGraph"};
    if (!is_driver_call(id)) {
        return needs_context(id) && id != CALL_cudaPointerGetAttributes;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strncmp(call_names[id], prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Gives the call the error of its device. The first that the observer sees says why. */
static bool fail_if_broken(sim_call *call)
{
    sim_device *d = &sim.devices[call->thread->device];
    if (__builtin_expect(d->error == 0, 1) || !fails_on_broken(call->id)) {
        return false;
    }
    call->record.result = d->error;
    if (!d->is_error_noted && !is_harness) {
        d->is_error_noted = true;
        call->record.misuse = "queued work touched memory that is not allocated any more; "
                              "the device is lost until it is reset";
        call->record.misuse_rule = "device_lost";
    }
    return true;
}

/* What a host function may call. */
static bool works_in_host_function(call_id id)
{
    return id == CALL_cudaEventQuery || id == CALL_cuEventQuery || id == CALL_cudaGetLastError ||
           id == CALL_cudaPeekAtLastError;
}

/* Calls that a capture in another stream forbids, whatever they are given. */
static bool is_unsafe_in_capture(call_id id)
{
    switch (id) {
    case CALL_cudaMalloc:
    case CALL_cudaFree:
    case CALL_cudaMallocHost:
    case CALL_cudaHostAlloc:
    case CALL_cudaFreeHost:
    case CALL_cuMemAlloc_v2:
    case CALL_cuMemFree_v2:
    case CALL_cuMemHostAlloc:
    case CALL_cuMemAllocHost_v2:
    case CALL_cuMemFreeHost:
    case CALL_cudaMallocPitch:
    case CALL_cudaMalloc3D:
        return true;
    default:
        return false;
    }
}

/* The error of a call that may not be made where it is made; 0: it may. */
static int forbidden(sim_call *call)
{
    if (sim_is_in_host_function() && !works_in_host_function(call->id)) {
        return call_misuse(call, cudaErrorNotPermitted, "a CUDA call within a host function");
    }
    return capture_is_any() && is_unsafe_in_capture(call->id) ? capture_check_unsafe(call) : 0;
}

static void yield_at(call_id id, bool is_before)
{
    gmd_sim_yield *hook = atomic_load_explicit(&yield_hook, memory_order_acquire);
    if (__builtin_expect(hook != NULL, 0)) {
        hook(atomic_load_explicit(&yield_context, memory_order_relaxed), call_names[id], is_before);
    }
}

bool call_enter(sim_call *call, call_id id)
{
    yield_at(id, true);
    sim_lock();
    sim_start();
    call->thread = sim_this_thread();
    call->id = id;
    call->lacks_memory = false;
    call->record = (gmd_sim_call){.function = call_names[id], .device = call->thread->device};
    if (!is_harness && counts_add(call)) {
        return false;
    }
    if (!call->thread->has_context && needs_context(id)) {
        device_use(call->thread, call->thread->is_detached ? 0 : call->thread->device);
    }
    if (fail_if_broken(call)) {
        return false;
    }
    if (call->thread->has_context && !sim_is_in_host_function()) {
        schedule_progress();
    }
    call->record.result = forbidden(call);
    return call->record.result == 0;
}

int call_leave(sim_call *call)
{
    if (!call->record.misuse &&
        (call->record.result == cudaSuccess || call->record.result == cudaErrorNotReady)) {
        fail_if_broken(call); /* by work that completed meanwhile */
    }
    if (call->lacks_memory) {
        call->record.result = cudaErrorMemoryAllocation;
    }
    GMD_ASSERT_VALID(sim_due_violation());
    int result = call->record.result;
    if (result && result != cudaErrorNotReady && !is_driver_call(call->id) &&
        call->id != CALL_cudaGetLastError && call->id != CALL_cudaPeekAtLastError) {
        call->thread->last_error = (cudaError_t)result;
    }
    if (call->record.misuse && !is_harness) {
        counts_add_misuse();
    }
    gmd_sim_observer *observer = is_harness ? NULL : observing.observer;
    void *context = observing.context;
    sim_unlock();
    if (observer) {
        observer(context, &call->record);
    }
    yield_at(call->id, false);
    return result;
}

cudaError_t gmd_sim_cudaGetLastError(void)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaGetLastError)) {
        call.record.result = (int)call.thread->last_error;
        call.thread->last_error = cudaSuccess;
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaPeekAtLastError(void)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaPeekAtLastError)) {
        call.record.result = (int)call.thread->last_error;
    }
    return (cudaError_t)call_leave(&call);
}

/* --- control ----------------------------------------------------------------------------- */

void gmd_sim_harness(bool is_harness_now)
{
    is_harness = is_harness_now;
}

void gmd_sim_observe(gmd_sim_observer *observer, void *context)
{
    sim_lock();
    observing.observer = observer;
    observing.context = context;
    sim_unlock();
}

void gmd_sim_set_yield(gmd_sim_yield *hook, void *context)
{
    atomic_store_explicit(&yield_hook, NULL, memory_order_relaxed);
    atomic_store_explicit(&yield_context, context, memory_order_relaxed);
    atomic_store_explicit(&yield_hook, hook, memory_order_release);
}
