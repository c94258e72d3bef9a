/* Settings of devices that an allocator or a framework asks for and sets, and that change nothing
 * here: scheduling flags, limits, names on the bus. */
#include "calls.h"
#include "contexts.h"
#include "state.h"

#include <stdio.h>
#include <stdlib.h>

static const char no_device[] = "there is no device of this number";

cudaError_t gmd_sim_cudaSetDeviceFlags(unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaSetDeviceFlags)) {
        const unsigned known = cudaDeviceScheduleMask | cudaDeviceMapHost |
                               cudaDeviceLmemResizeToMax | cudaDeviceSyncMemops;
        unsigned schedule = flags & cudaDeviceScheduleMask;
        if ((flags & ~known) || (schedule & (schedule - 1))) {
            call.record.result =
                call_misuse(&call, cudaErrorInvalidValue, "unknown or contradictory device flags");
        } else {
            sim.devices[call.thread->device].flags = flags;
        }
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaGetDeviceFlags(unsigned int *flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaGetDeviceFlags)) {
        if (flags) {
            *flags = sim.devices[call.thread->device].flags | cudaDeviceMapHost;
        } else {
            call.record.result =
                call_misuse(&call, cudaErrorInvalidValue, "no place for the device's flags");
        }
    }
    return (cudaError_t)call_leave(&call);
}

enum { BUS_ID_BYTES = 13 };

cudaError_t gmd_sim_cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceGetPCIBusId)) {
        if (!device_exists(device)) {
            call.record.result = call_misuse(&call, cudaErrorInvalidDevice, no_device);
        } else if (!text || length < BUS_ID_BYTES) {
            call.record.result =
                call_misuse(&call, cudaErrorInvalidValue, "no place for 13 characters");
        } else {
            snprintf(text, (size_t)length, "0000:%02X:00.0", (unsigned)device + 1);
        }
    }
    return (cudaError_t)call_leave(&call);
}

/* The device at "domain:bus:slot.function", hexadecimal; -1: there is none. */
static int device_at(const char *text)
{
    char *rest;
    unsigned long domain = strtoul(text, &rest, 16);
    unsigned long bus = *rest == ':' ? strtoul(rest + 1, &rest, 16) : 0;
    bool is_first_slot = *rest == ':' && strtoul(rest + 1, &rest, 16) == 0;
    bool is_there = is_first_slot && domain == 0 && bus >= 1 && bus <= GMD_SIM_DEVICE_MAX;
    return is_there && device_exists((int)bus - 1) ? (int)bus - 1 : -1;
}

cudaError_t gmd_sim_cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceGetByPCIBusId)) {
        int found = device && text ? device_at(text) : -1;
        if (found >= 0) {
            *device = found;
        } else {
            call.record.result =
                call_misuse(&call, device && text ? cudaErrorInvalidDevice : cudaErrorInvalidValue,
                            "no device is at this place of the bus");
        }
    }
    return (cudaError_t)call_leave(&call);
}

/* --- limits ------------------------------------------------------------------------------ */

static size_t *limit_of(sim_call *call, enum cudaLimit which)
{
    static const size_t at_first[LIMIT_COUNT] = {1024, 1 << 20, 8 << 20};
    size_t *limits = sim.devices[call->thread->device].limits;
    if ((unsigned)which >= LIMIT_COUNT) {
        return NULL;
    }
    if (!limits[which]) {
        limits[which] = at_first[which];
    }
    return &limits[which];
}

cudaError_t gmd_sim_cudaDeviceGetLimit(size_t *value, enum cudaLimit which)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceGetLimit)) {
        const size_t *limit = limit_of(&call, which);
        if (value && limit) {
            *value = *limit;
        } else {
            call.record.result =
                call_misuse(&call, cudaErrorInvalidValue,
                            "no place for the limit, or one that is not simulated");
        }
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaDeviceSetLimit(enum cudaLimit which, size_t value)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceSetLimit)) {
        size_t *limit = limit_of(&call, which);
        if (limit) {
            *limit = value;
        } else {
            call.record.result =
                call_misuse(&call, cudaErrorInvalidValue, "a limit that is not simulated");
        }
    }
    return (cudaError_t)call_leave(&call);
}

static int p2p_attribute(sim_call *call, int *value, int which, int from, int to)
{
    if (!device_exists(from) || !device_exists(to) || from == to) {
        return call_misuse(call, cudaErrorInvalidDevice,
                           "these are not the numbers of two devices");
    }
    if (!value || which < cudaDevP2PAttrPerformanceRank ||
        which > cudaDevP2PAttrCudaArrayAccessSupported) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the answer, or no question");
    }
    *value = 0; /* no links */
    return cudaSuccess;
}

SIM_CALL(cudaDeviceGetP2PAttribute, (int *value, enum cudaDeviceP2PAttr which, int from, int to),
         p2p_attribute(&call, value, (int)which, from, to))

CUresult gmd_sim_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute which, CUdevice from,
                                         CUdevice to)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDeviceGetP2PAttribute)) {
        int refused = driver_check(&call, 0);
        call.record.result = refused ? refused : p2p_attribute(&call, value, (int)which, from, to);
    }
    return (CUresult)call_leave(&call);
}
