/* The functions on stream-ordered pools, and the driver's that allocate from the current one. */
#include "address_map.h"
#include "calls.h"
#include "happens_before.h"
#include "memory.h"
#include "pools.h"
#include "streams.h"
#include "waiting.h"

/* --- allocating and freeing -------------------------------------------------------------- */

cudaError_t gmd_sim_cudaMallocAsync(void **pointer, size_t size, cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaMallocAsync)) {
        call.record.result = pool_allocate(&call, pointer, size, handle);
    }
    return (cudaError_t)call_leave(&call);
}

SIM_CALL(cudaMallocFromPoolAsync,
         (void **pointer, size_t size, cudaMemPool_t from, cudaStream_t handle),
         pool_allocate_from(&call, from, pointer, size, handle))

static int free_async(sim_call *call, uint64_t address, cudaStream_t handle)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (s->capture) {
        return cudaErrorNotSupported;
    }
    const allocation *a = map_find(address);
    call->record.address = address;
    if (!a || a->address != address || a->reservation) {
        return call_misuse_of(call, cudaErrorInvalidValue, "not_allocated",
                              "a free of what is not allocated (freed before, or never allocated)");
    }
    call->record.size = a->size;
    call->record.device = a->device;
    if (!a->pool_block) { /* of cudaMalloc: it is gone once the stream has come here */
        host_wait(stream_point(s));
        memory_release_at(address);
        return cudaSuccess;
    }
    if (!stream_order_default(s)) {
        return cudaErrorMemoryAllocation;
    }
    return pool_free(a->pool_block, stream_point(s))
               ? (int)cudaSuccess
               : call_misuse_of(call, cudaErrorInvalidValue, "freed",
                                "the memory is freed already");
}

cudaError_t gmd_sim_cudaFreeAsync(void *pointer, cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaFreeAsync) && pointer) {
        call.record.result = free_async(&call, (uintptr_t)pointer, handle);
    }
    return (cudaError_t)call_leave(&call);
}

CUresult gmd_sim_cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemAllocAsync)) {
        void *out = NULL;
        if (!call.thread->has_context) {
            call.record.result = CUDA_ERROR_INVALID_CONTEXT;
        } else {
            call.record.result = pool_allocate(&call, pointer ? &out : NULL, size, handle);
        }
        if (!call.record.result && pointer) {
            *pointer = (uintptr_t)out;
        }
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuMemFreeAsync(CUdeviceptr pointer, CUstream handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemFreeAsync) && pointer) {
        call.record.result = call.thread->has_context ? free_async(&call, pointer, handle)
                                                      : (int)CUDA_ERROR_INVALID_CONTEXT;
    }
    return (CUresult)call_leave(&call);
}

/* --- pools ------------------------------------------------------------------------------- */

/* Pools of device memory only. */
static int tell_default(sim_call *call, cudaMemPool_t *out, const struct cudaMemLocation *location,
                        enum cudaMemAllocationType type)
{
    if (!location) {
        return call_misuse(call, cudaErrorInvalidValue, "no location");
    }
    if (location->type != cudaMemLocationTypeDevice || type != cudaMemAllocationTypePinned) {
        return cudaErrorNotSupported;
    }
    return pool_tell(call, out, location->id, true);
}

SIM_CALL(cudaMemPoolCreate, (cudaMemPool_t * out, const struct cudaMemPoolProps *properties),
         pool_create(&call, out, properties))
SIM_CALL(cudaMemPoolDestroy, (cudaMemPool_t handle), pool_destroy(&call, handle))
SIM_CALL(cudaMemPoolTrimTo, (cudaMemPool_t handle, size_t keep), pool_trim(&call, handle, keep))

SIM_CALL(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * out, int device),
         pool_tell(&call, out, device, true))
SIM_CALL(cudaMemGetDefaultMemPool,
         (cudaMemPool_t * out, struct cudaMemLocation *location, enum cudaMemAllocationType type),
         tell_default(&call, out, location, type))
SIM_CALL(cudaDeviceGetMemPool, (cudaMemPool_t * out, int device),
         pool_tell(&call, out, device, false))
SIM_CALL(cudaDeviceSetMemPool, (int device, cudaMemPool_t handle),
         pool_make_current(&call, device, handle))
