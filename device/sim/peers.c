/* Peer access and sharing between processes. The simulated devices have no links between them, as
 * a machine whose cards are not connected. */
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

cudaError_t gmd_sim_cudaDeviceCanAccessPeer(int *answer, int device, int peer)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceCanAccessPeer)) {
        call.record.result = can_access(&call, answer, device, peer);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceEnablePeerAccess)) {
        if (flags) {
            call.record.result =
                call_misuse(&call, cudaErrorInvalidValue, "flags for peer access are 0");
        } else if (!device_exists(peer)) {
            call.record.result = call_misuse(&call, cudaErrorInvalidDevice, no_device);
        } else { /* the device itself is no peer either */
            call.record.result = cudaErrorPeerAccessUnsupported;
        }
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaDeviceDisablePeerAccess(int peer)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceDisablePeerAccess)) {
        call.record.result =
            device_exists(peer)
                ? call_misuse(&call, cudaErrorPeerAccessNotEnabled, "peer access is not enabled")
                : call_misuse(&call, cudaErrorInvalidDevice, no_device);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaIpcGetMemHandle)) {
        const allocation *a = map_find((uintptr_t)pointer);
        call.record.result =
            handle && a && !a->reservation && !a->pool_piece
                ? (int)cudaErrorNotSupported
                : call_misuse(&call, cudaErrorInvalidValue,
                              "no place for the handle, or no memory of cudaMalloc");
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle,
                                         unsigned int flags)
{
    sim_call call;
    (void)pointer;
    (void)handle;
    (void)flags;
    if (call_enter(&call, CALL_cudaIpcOpenMemHandle)) {
        call.record.result =
            call_misuse(&call, cudaErrorInvalidValue, "the handle is not one of another process");
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaIpcCloseMemHandle(void *pointer)
{
    sim_call call;
    (void)pointer;
    if (call_enter(&call, CALL_cudaIpcCloseMemHandle)) {
        call.record.result = call_misuse(&call, cudaErrorInvalidValue,
                                         "the memory was not opened from another process");
    }
    return (cudaError_t)call_leave(&call);
}
