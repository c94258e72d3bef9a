/* Peer access and sharing between processes. The simulated devices have no links between them, as
 * a machine whose cards are not connected. */
#include "address_map.h"
#include "calls.h"
#include "contexts.h"
#include "state.h"

static const char no_device[] = "there is no device of this number";

static int can_access(sim_call *call, int *answer, int device, int peer)
{
    if (!answer) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the answer");
    }
    if (!device_exists(device) || !device_exists(peer)) {
        return call_misuse(call, cudaErrorInvalidDevice, no_device);
    }
    *answer = 0;
    return cudaSuccess;
}

static int enable(sim_call *call, int peer, unsigned flags)
{
    if (flags) {
        return call_misuse(call, cudaErrorInvalidValue, "flags for peer access are 0");
    }
    if (!device_exists(peer)) {
        return call_misuse(call, cudaErrorInvalidDevice, no_device);
    }
    return cudaErrorPeerAccessUnsupported; /* the device itself is no peer either */
}

static int disable(sim_call *call, int peer)
{
    return device_exists(peer)
               ? call_misuse(call, cudaErrorPeerAccessNotEnabled, "peer access is not enabled")
               : call_misuse(call, cudaErrorInvalidDevice, no_device);
}

SIM_CALL(cudaDeviceCanAccessPeer, (int *answer, int device, int peer),
         can_access(&call, answer, device, peer))
SIM_CALL(cudaDeviceEnablePeerAccess, (int peer, unsigned flags), enable(&call, peer, flags))
SIM_CALL(cudaDeviceDisablePeerAccess, (int peer), disable(&call, peer))

/* --- the driver's forms: peers are named by their contexts ------------------------------- */

CUresult gmd_sim_cuDeviceCanAccessPeer(int *answer, CUdevice device, CUdevice peer)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDeviceCanAccessPeer)) {
        int refused = driver_check(&call, 0);
        call.record.result = refused ? refused : can_access(&call, answer, device, peer);
    }
    return (CUresult)call_leave(&call);
}

static int enable_context(sim_call *call, CUcontext peer, unsigned flags)
{
    int device = context_device(call, peer);
    return device < 0 ? (int)CUDA_ERROR_INVALID_CONTEXT : enable(call, device, flags);
}

static int disable_context(sim_call *call, CUcontext peer)
{
    int device = context_device(call, peer);
    return device < 0 ? (int)CUDA_ERROR_INVALID_CONTEXT : disable(call, device);
}

SIM_DRIVER_CALL(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags),
                enable_context(&call, peer, flags))
SIM_DRIVER_CALL(cuCtxDisablePeerAccess, (CUcontext peer), disable_context(&call, peer))

/* --- other processes --------------------------------------------------------------------- */

static int export_memory(sim_call *call, const void *handle, uint64_t address)
{
    const allocation *a = map_find(address);
    return handle && a && !a->reservation && !a->pool_block
               ? (int)cudaErrorNotSupported
               : call_misuse(call, cudaErrorInvalidValue,
                             "no place for the handle, or no memory of cudaMalloc");
}

static int not_from_elsewhere(sim_call *call, void *unused)
{
    (void)unused;
    return call_misuse(call, cudaErrorInvalidValue,
                       "the handle or memory is not one of another process");
}

SIM_CALL(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *pointer),
         export_memory(&call, handle, (uintptr_t)pointer))
SIM_CALL(cudaIpcOpenMemHandle, (void **pointer, cudaIpcMemHandle_t handle, unsigned flags),
         ((void)handle, (void)flags, not_from_elsewhere(&call, pointer)))
SIM_CALL(cudaIpcCloseMemHandle, (void *pointer), not_from_elsewhere(&call, pointer))
SIM_DRIVER_CALL(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr pointer),
                export_memory(&call, handle, pointer))
SIM_DRIVER_CALL(cuIpcOpenMemHandle_v2,
                (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned flags),
                ((void)handle, (void)flags, not_from_elsewhere(&call, pointer)))
SIM_DRIVER_CALL(cuIpcCloseMemHandle, (CUdeviceptr pointer),
                ((void)pointer, not_from_elsewhere(&call, NULL)))
