/* The functions that allocate device memory, and free it. */
#include "address_map.h"
#include "calls.h"
#include "memory.h"
#include "pools.h"
#include "state.h"
#include "waiting.h"

static void note_allocation(sim_call *call, uint64_t address, uint64_t size)
{
    call->record.kind = GMD_SIM_CALL_MALLOC;
    call->record.address = address;
    call->record.size = size;
}

cudaError_t gmd_sim_cudaMalloc(void **pointer, size_t size)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaMalloc)) {
        uint64_t address = 0;
        if (!pointer) {
            call.record.result =
                call_misuse(&call, cudaErrorInvalidValue, "no place for the new pointer");
        } else if (size == 0 || memory_allocate(call.thread->device, size, 0, &address)) {
            *pointer = (void *)(uintptr_t)address;
        } else {
            call.record.result = cudaErrorMemoryAllocation;
        }
        note_allocation(&call, address, size);
    }
    return (cudaError_t)call_leave(&call);
}

/* Rows are as far apart as Hopper wants them. */
static int allocate_rows(sim_call *call, void **pointer, size_t *pitch, size_t width, size_t height)
{
    enum { ROW_UNIT = 512 };
    size_t row, size;
    if (!pointer || !pitch) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the new pointer or pitch");
    }
    if (__builtin_add_overflow(width, (size_t)ROW_UNIT - 1, &row) ||
        __builtin_mul_overflow(row / ROW_UNIT * ROW_UNIT, height, &size)) {
        return cudaErrorInvalidValue;
    }
    uint64_t address = 0;
    if (size && !memory_allocate(call->thread->device, size, 0, &address)) {
        return cudaErrorMemoryAllocation;
    }
    *pitch = size ? row / ROW_UNIT * ROW_UNIT : 0;
    *pointer = (void *)(uintptr_t)address;
    note_allocation(call, address, size);
    return cudaSuccess;
}

static int allocate_box(sim_call *call, struct cudaPitchedPtr *out, struct cudaExtent size)
{
    size_t height;
    if (!out) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the new pointer");
    }
    if (__builtin_mul_overflow(size.height, size.depth, &height)) {
        return cudaErrorInvalidValue;
    }
    int result = allocate_rows(call, &out->ptr, &out->pitch, size.width, height);
    if (!result) {
        out->xsize = size.width;
        out->ysize = size.height;
    }
    return result;
}

SIM_CALL(cudaMalloc3D, (struct cudaPitchedPtr * out, struct cudaExtent size),
         allocate_box(&call, out, size))
SIM_CALL(cudaMallocPitch, (void **pointer, size_t *pitch, size_t width, size_t height),
         allocate_rows(&call, pointer, pitch, width, height))

CUresult gmd_sim_cuMemAlloc_v2(CUdeviceptr *pointer, size_t size)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemAlloc_v2)) {
        uint64_t address = 0;
        if (!call.thread->has_context) {
            call.record.result = CUDA_ERROR_INVALID_CONTEXT;
        } else if (!pointer || size == 0) {
            call.record.result = call_misuse(&call, CUDA_ERROR_INVALID_VALUE,
                                             "no place for the new pointer, or a size of 0");
        } else if (memory_allocate(call.thread->device, size, 0, &address)) {
            *pointer = address;
        } else {
            call.record.result = CUDA_ERROR_OUT_OF_MEMORY;
        }
        note_allocation(&call, address, size);
    }
    return (CUresult)call_leave(&call);
}

/* Waits for the device's work first, as the real cudaFree does and allocators rely on: but not for
 * memory of a pool, of which the caller says that no work uses it (CUDA Driver API, cuMemFree). */
static int free_address(sim_call *call, uint64_t address)
{
    call->record.kind = GMD_SIM_CALL_FREE;
    call->record.address = address;
    allocation *a = map_find(address);
    if (!a || a->address != address || a->reservation) {
        return call_misuse_of(
            call, cudaErrorInvalidValue, a ? "inside" : "not_allocated",
            a ? "a free of an address inside an allocation, not its start"
              : "a free of what is not allocated (freed before, or never allocated)");
    }
    call->record.size = a->size;
    call->record.device = a->device;
    if (a->pool_block) {
        call->record.is_pooled = true;
        return pool_free(a->pool_block, (point){0})
                   ? (int)cudaSuccess
                   : call_misuse_of(call, cudaErrorInvalidValue, "freed",
                                    "the memory is freed already");
    }
    if (!sim.config.free_is_lenient) {
        host_wait_device(a->device);
        a = map_find(address); /* a host function may have run meanwhile, beside other threads */
        if (!a || a->address != address) {
            return cudaSuccess;
        }
    }
    memory_release(a);
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaFree(void *pointer)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaFree) && pointer) {
        call.record.result = free_address(&call, (uintptr_t)pointer);
    }
    return (cudaError_t)call_leave(&call);
}

CUresult gmd_sim_cuMemFree_v2(CUdeviceptr pointer)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemFree_v2) && pointer) {
        call.record.result = call.thread->has_context ? free_address(&call, pointer)
                                                      : (int)CUDA_ERROR_INVALID_CONTEXT;
    }
    return (CUresult)call_leave(&call);
}

/* Either figure may go unasked. */
static int memory_info(const sim_call *call, size_t *free_bytes, size_t *total_bytes)
{
    if (free_bytes) {
        *free_bytes = sim.config.capacity_bytes - sim.devices[call->thread->device].physical_bytes;
    }
    if (total_bytes) {
        *total_bytes = sim.config.capacity_bytes;
    }
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaMemGetInfo)) {
        call.record.result = memory_info(&call, free_bytes, total_bytes);
    }
    return (cudaError_t)call_leave(&call);
}

CUresult gmd_sim_cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemGetInfo_v2)) {
        call.record.result = call.thread->has_context ? memory_info(&call, free_bytes, total_bytes)
                                                      : (int)CUDA_ERROR_INVALID_CONTEXT;
    }
    return (CUresult)call_leave(&call);
}
