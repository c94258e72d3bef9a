#include "contexts.h"

#include "state.h"

void device_use(sim_thread *thread, int device)
{
    thread->device = device;
    thread->has_context = true;
    thread->is_detached = false;
    sim.devices[device].is_active = true;
    sim.is_driver_initialized = true;
}

CUcontext context_of(int device)
{
    return (CUcontext)(uintptr_t)handle_make(HANDLE_CONTEXT, (uint64_t)device + 1);
}

int driver_check(sim_call *call, CUdevice device)
{
    if (!sim.is_driver_initialized) {
        return call_misuse(call, CUDA_ERROR_NOT_INITIALIZED, "cuInit has not been called");
    }
    return device_exists(device)
               ? (int)CUDA_SUCCESS
               : call_misuse(call, CUDA_ERROR_INVALID_DEVICE, "there is no device of this number");
}

int context_device(sim_call *call, CUcontext context)
{
    uint64_t serial = handle_serial((uintptr_t)context, HANDLE_CONTEXT);
    if (serial == 0 || serial > sim.config.device_count) {
        call_misuse(call, 0,
                    "the context is not a device's primary context, or from before a reset");
        return -1;
    }
    return (int)serial - 1;
}
