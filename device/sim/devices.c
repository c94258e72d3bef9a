/* Devices, contexts, versions and the names of errors. */
#include "calls.h"
#include "contexts.h"
#include "control.h"
#include "events.h"
#include "host_clock.h"
#include "lock.h"
#include "memory.h"
#include "placement.h"
#include "pools.h"
#include "queue.h"
#include "streams.h"

#include <stdio.h>
#include <string.h>

enum { DRIVER_VERSION = 13000 };
#define DEVICE_NAME "gmd simulated device"

/* --- the runtime ------------------------------------------------------------------------- */

static int put(sim_call *call, int *out, int value)
{
    if (!out) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the answer");
    }
    *out = value;
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaGetDevice(int *device)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaGetDevice)) {
        call.record.result = put(&call, device, call.thread->device);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaGetDeviceCount(int *count)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaGetDeviceCount)) {
        call.record.result = put(&call, count, (int)sim.config.device_count);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaSetDevice(int device)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaSetDevice)) {
        if (device_exists(device)) {
            device_use(call.thread, device);
            call.thread->chosen = device;
        } else {
            call.record.result =
                call_misuse(&call, cudaErrorInvalidDevice, "there is no device of this number");
        }
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_runtime_version(int *version, int of_library)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaRuntimeGetVersion)) {
        call.record.result = put(&call, version, of_library);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaDriverGetVersion(int *version)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDriverGetVersion)) {
        call.record.result = put(&call, version, DRIVER_VERSION);
    }
    return (cudaError_t)call_leave(&call);
}

/* An H200's figures where allocators look at them. False: not modelled. */
static bool attribute_value(int attribute, int device, int *value)
{
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        return true;
    case cudaDevAttrWarpSize:
        *value = 32;
        return true;
    case cudaDevAttrMultiProcessorCount:
        *value = 132;
        return true;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = 2048;
        return true;
    case cudaDevAttrL2CacheSize:
        *value = 60 << 20;
        return true;
    case cudaDevAttrAsyncEngineCount:
        *value = 3;
        return true;
    case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        return true;
    case cudaDevAttrPciBusId:
        *value = device + 1;
        return true;
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrHostRegisterSupported:
    case (int)CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        *value = 1;
        return true;
    case cudaDevAttrIntegrated:
    case cudaDevAttrComputeCapabilityMinor:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrGPUDirectRDMASupported:
    case cudaDevAttrMemoryPoolSupportedHandleTypes:
    case cudaDevAttrManagedMemory: /* not simulated */
    case (int)CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case (int)CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
        *value = 0;
        return true;
    default:
        return false;
    }
}

static int attribute(sim_call *call, int *value, int which, int device)
{
    int found;
    if (!device_exists(device)) {
        return call_misuse(call, cudaErrorInvalidDevice, "there is no device of this number");
    }
    if (!value) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the answer");
    }
    if (!attribute_value(which, device, &found)) {
        return cudaErrorInvalidValue; /* not simulated, which is not the caller's fault */
    }
    *value = found;
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceGetAttribute)) {
        call.record.result = attribute(&call, value, (int)which, device);
    }
    return (cudaError_t)call_leave(&call);
}

/* Everything of the current device is gone, work unfinished; other devices stay. */
static void reset_device(int device)
{
    queues_reset_device(device);
    host_learn_group(device, STREAMS_ALL);
    streams_reset_device(device);
    events_reset_device(device);
    pools_reset_device(device);
    memory_release_device(device);
    placement_reset_device(device);
    sim.devices[device].is_active = false;
    sim.devices[device].error = 0;
    sim.devices[device].is_error_noted = false;
}

cudaError_t gmd_sim_cudaDeviceReset(void)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceReset)) {
        reset_device(call.thread->device);
        call.thread->has_context = false;
    }
    return (cudaError_t)call_leave(&call);
}

/* --- errors ------------------------------------------------------------------------------ */

const char *gmd_sim_cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define ERROR_NAME(name, value, text)                                                              \
    case name:                                                                                     \
        return #name;
        GMD_CUDA_ERRORS(ERROR_NAME)
#undef ERROR_NAME
    }
    return "unrecognized error code";
}

const char *gmd_sim_cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define ERROR_TEXT(name, value, text)                                                              \
    case name:                                                                                     \
        return text;
        GMD_CUDA_ERRORS(ERROR_TEXT)
#undef ERROR_TEXT
    }
    return "unrecognized error code";
}

static const char *driver_error_name(CUresult error)
{
    switch (error) {
#define ERROR_NAME(name, value)                                                                    \
    case name:                                                                                     \
        return #name;
        GMD_CUDA_DRIVER_ERRORS(ERROR_NAME)
#undef ERROR_NAME
    }
    return NULL;
}

static CUresult error_text(CUresult error, const char *found, const char **text)
{
    if (!text) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *text = driver_error_name(error) ? found : NULL;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult gmd_sim_cuGetErrorName(CUresult error, const char **text)
{
    sim_call call;
    if (call_enter(&call, CALL_cuGetErrorName)) {
        call.record.result = (int)error_text(error, driver_error_name(error), text);
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuGetErrorString(CUresult error, const char **text)
{
    sim_call call;
    if (call_enter(&call, CALL_cuGetErrorString)) {
        const char *found = gmd_sim_cudaGetErrorString((cudaError_t)(int)error);
        call.record.result = (int)error_text(error, found, text);
    }
    return (CUresult)call_leave(&call);
}

/* --- the driver -------------------------------------------------------------------------- */

CUresult gmd_sim_cuInit(unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cuInit)) {
        if (flags) {
            call.record.result =
                call_misuse(&call, CUDA_ERROR_INVALID_VALUE, "cuInit takes no flags");
        } else {
            sim.is_driver_initialized = true;
        }
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuDriverGetVersion(int *version)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDriverGetVersion)) {
        call.record.result = put(&call, version, DRIVER_VERSION);
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuDeviceGet(CUdevice *device, int ordinal)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDeviceGet)) {
        int refused = driver_check(&call, ordinal);
        call.record.result = refused ? refused : put(&call, device, ordinal);
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuDeviceGetCount(int *count)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDeviceGetCount)) {
        int refused = driver_check(&call, 0);
        call.record.result = refused ? refused : put(&call, count, (int)sim.config.device_count);
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuDeviceGetName(char *name, int length, CUdevice device)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDeviceGetName)) {
        call.record.result = driver_check(&call, device);
        if (!call.record.result && (!name || length < 1)) {
            call.record.result =
                call_misuse(&call, CUDA_ERROR_INVALID_VALUE, "no place for the name");
        } else if (!call.record.result) {
            snprintf(name, (size_t)length, "%s", DEVICE_NAME);
        }
    }
    return (CUresult)call_leave(&call);
}

static CUuuid uuid_of(int device)
{
    CUuuid id = {{0}};
    id.bytes[0] = (char)(device + 1);
    return id;
}

CUresult gmd_sim_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDeviceGetUuid_v2)) {
        call.record.result = driver_check(&call, device);
        if (!call.record.result && !uuid) {
            call.record.result =
                call_misuse(&call, CUDA_ERROR_INVALID_VALUE, "no place for the answer");
        } else if (!call.record.result) {
            *uuid = uuid_of(device);
        }
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDeviceTotalMem_v2)) {
        call.record.result = driver_check(&call, device);
        if (!call.record.result && !bytes) {
            call.record.result =
                call_misuse(&call, CUDA_ERROR_INVALID_VALUE, "no place for the answer");
        } else if (!call.record.result) {
            *bytes = sim.config.capacity_bytes;
        }
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDeviceGetAttribute)) {
        int refused = driver_check(&call, device);
        call.record.result = refused ? refused : attribute(&call, value, (int)which, device);
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDevicePrimaryCtxRetain)) {
        call.record.result = driver_check(&call, device);
        if (!call.record.result && !context) {
            call.record.result =
                call_misuse(&call, CUDA_ERROR_INVALID_VALUE, "no place for the context");
        } else if (!call.record.result) {
            sim.devices[device].context_count++;
            sim.devices[device].is_active = true;
            *context = context_of(device);
        }
    }
    return (CUresult)call_leave(&call);
}

/* The context stays until cudaDeviceReset: the runtime, which shares it, may be using it. */
CUresult gmd_sim_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDevicePrimaryCtxRelease_v2)) {
        call.record.result = driver_check(&call, device);
        if (!call.record.result && sim.devices[device].context_count == 0) {
            call.record.result = call_misuse(&call, CUDA_ERROR_INVALID_CONTEXT,
                                             "the primary context is released more than retained");
        } else if (!call.record.result) {
            sim.devices[device].context_count--;
        }
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    sim_call call;
    if (call_enter(&call, CALL_cuDevicePrimaryCtxGetState)) {
        call.record.result = driver_check(&call, device);
        if (!call.record.result && (!flags || !active)) {
            call.record.result =
                call_misuse(&call, CUDA_ERROR_INVALID_VALUE, "no place for the answer");
        } else if (!call.record.result) {
            *flags = 0;
            *active = sim.devices[device].is_active;
        }
    }
    return (CUresult)call_leave(&call);
}

/* --- control ----------------------------------------------------------------------------- */

int gmd_sim_device(int device, gmd_sim_device_state *state)
{
    sim_lock();
    sim_start();
    bool exists = device_exists(device);
    if (exists) {
        const sim_device *d = &sim.devices[device];
        *state = (gmd_sim_device_state){.capacity_bytes = sim.config.capacity_bytes,
                                        .physical_bytes = d->physical_bytes,
                                        .allocated_bytes = d->allocated_bytes,
                                        .allocation_count = d->allocation_count,
                                        .stream_count = d->stream_count,
                                        .event_count = d->event_count,
                                        .reservation_count = d->reservation_count,
                                        .reservation_bytes = d->reservation_bytes,
                                        .handle_count = d->handle_count,
                                        .mapped_bytes = d->mapped_bytes,
                                        .pool_bytes = pools_hold(device)};
    }
    sim_unlock();
    return exists ? 0 : -1;
}

/* --- properties -------------------------------------------------------------------------- */

static void fill_properties(struct cudaDeviceProp *p, int device)
{
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", DEVICE_NAME);
    p->uuid = uuid_of(device);
    p->totalGlobalMem = sim.config.capacity_bytes;
    p->sharedMemPerBlock = 48 << 10;
    p->regsPerBlock = p->regsPerMultiprocessor = 64 << 10;
    p->warpSize = 32;
    p->memPitch = INT32_MAX;
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = INT32_MAX;
    p->maxGridSize[1] = p->maxGridSize[2] = UINT16_MAX;
    p->totalConstMem = 64 << 10;
    p->major = 9;
    p->textureAlignment = p->surfaceAlignment = 512;
    p->texturePitchAlignment = 32;
    p->multiProcessorCount = 132;
    p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = 1;
    p->streamPrioritiesSupported = p->hostRegisterSupported = 1;
    p->memoryPoolsSupported = 1;
    p->pciBusID = device + 1;
    p->asyncEngineCount = 3;
    p->l2CacheSize = 60 << 20;
    p->maxThreadsPerMultiProcessor = 2048;
    p->sharedMemPerMultiprocessor = 228 << 10;
    p->sharedMemPerBlockOptin = 227 << 10;
    p->maxBlocksPerMultiProcessor = 32;
    p->reservedSharedMemPerBlock = 1 << 10;
}

cudaError_t gmd_sim_cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaGetDeviceProperties)) {
        if (!properties) {
            call.record.result =
                call_misuse(&call, cudaErrorInvalidValue, "no place for the properties");
        } else if (!device_exists(device)) {
            call.record.result =
                call_misuse(&call, cudaErrorInvalidDevice, "there is no device of this number");
        } else {
            fill_properties(properties, device);
        }
    }
    return (cudaError_t)call_leave(&call);
}
