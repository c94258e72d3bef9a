/* The driver's contexts: each device has its primary one, and each thread a stack of them. */
#include "calls.h"
#include "contexts.h"
#include "state.h"
#include "waiting.h"

/* No context is current any more: the runtime says the device that cudaSetDevice chose, as an
 * H200's does, and uses device 0 all the same. */
static void detach(sim_thread *thread)
{
    thread->has_context = false;
    thread->is_detached = true;
    thread->device = thread->chosen;
}

CUresult gmd_sim_cuCtxGetCurrent(CUcontext *context)
{
    sim_call call;
    if (call_enter(&call, CALL_cuCtxGetCurrent)) {
        call.record.result = driver_check(&call, 0);
        if (!call.record.result && !context) {
            call.record.result =
                call_misuse(&call, CUDA_ERROR_INVALID_VALUE, "no place for the context");
        } else if (!call.record.result) {
            *context = call.thread->has_context ? context_of(call.thread->device) : NULL;
        }
    }
    return (CUresult)call_leave(&call);
}

static int set_context(sim_call *call, CUcontext context)
{
    int refused = driver_check(call, 0);
    if (refused) {
        return refused;
    }
    if (!context) {
        detach(call->thread);
        return CUDA_SUCCESS;
    }
    int device = context_device(call, context);
    if (device < 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    device_use(call->thread, device);
    return CUDA_SUCCESS;
}

CUresult gmd_sim_cuCtxSetCurrent(CUcontext context)
{
    sim_call call;
    if (call_enter(&call, CALL_cuCtxSetCurrent)) {
        call.record.result = set_context(&call, context);
    }
    return (CUresult)call_leave(&call);
}

/* --- the stack --------------------------------------------------------------------------- */

static int push(sim_call *call, CUcontext context)
{
    sim_thread *thread = call->thread;
    int refused = driver_check(call, 0);
    if (!refused && !context) {
        return call_misuse(call, CUDA_ERROR_INVALID_VALUE, "no context is given");
    }
    int device = refused ? -1 : context_device(call, context);
    if (device < 0) {
        return refused ? refused : (int)CUDA_ERROR_INVALID_CONTEXT;
    }
    if (thread->pushed_count == CONTEXT_STACK_MAX) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    thread->pushed[thread->pushed_count++] =
        (int8_t)(thread->has_context ? thread->device : NO_CONTEXT);
    device_use(thread, device);
    return CUDA_SUCCESS;
}

CUresult gmd_sim_cuCtxPushCurrent_v2(CUcontext context)
{
    sim_call call;
    if (call_enter(&call, CALL_cuCtxPushCurrent_v2)) {
        call.record.result = push(&call, context);
    }
    return (CUresult)call_leave(&call);
}

static int pop(sim_call *call, CUcontext *out)
{
    sim_thread *thread = call->thread;
    int refused = driver_check(call, 0);
    if (refused) {
        return refused;
    }
    if (!thread->has_context) {
        return call_misuse(call, CUDA_ERROR_INVALID_CONTEXT, "no context is current");
    }
    if (out) {
        *out = context_of(thread->device);
    }
    int below = thread->pushed_count ? thread->pushed[--thread->pushed_count] : NO_CONTEXT;
    if (below == NO_CONTEXT) {
        detach(thread);
    } else {
        device_use(thread, below);
    }
    return CUDA_SUCCESS;
}

CUresult gmd_sim_cuCtxPopCurrent_v2(CUcontext *context)
{
    sim_call call;
    if (call_enter(&call, CALL_cuCtxPopCurrent_v2)) {
        call.record.result = pop(&call, context);
    }
    return (CUresult)call_leave(&call);
}

/* --- asking, waiting --------------------------------------------------------------------- */

static int current_check(sim_call *call, const void *out)
{
    int refused = driver_check(call, 0);
    if (refused) {
        return refused;
    }
    if (!out) {
        return call_misuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the answer");
    }
    return call->thread->has_context ? (int)CUDA_SUCCESS : (int)CUDA_ERROR_INVALID_CONTEXT;
}

CUresult gmd_sim_cuCtxGetDevice(CUdevice *device)
{
    sim_call call;
    if (call_enter(&call, CALL_cuCtxGetDevice)) {
        call.record.result = current_check(&call, device);
        if (!call.record.result) {
            *device = call.thread->device;
        }
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuCtxGetFlags(unsigned int *flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cuCtxGetFlags)) {
        call.record.result = current_check(&call, flags);
        if (!call.record.result) {
            *flags = sim.devices[call.thread->device].flags | cudaDeviceMapHost;
        }
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuCtxSynchronize(void)
{
    sim_call call;
    if (call_enter(&call, CALL_cuCtxSynchronize)) {
        call.record.result = current_check(&call, &call);
        if (!call.record.result) {
            host_wait_device(call.thread->device);
        }
    }
    return (CUresult)call_leave(&call);
}
