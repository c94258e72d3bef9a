/* The functions on page-locked host memory. */
#include "calls.h"
#include "host_memory.h"
#include "waiting.h"

#include <stdlib.h>

/* --- allocating -------------------------------------------------------------------------- */

static int host_alloc(sim_call *call, void **pointer, size_t size, unsigned flags)
{
    const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    if (!pointer || (flags & ~known)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no place for the new pointer, or unknown flags");
    }
    if (size == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    pinned p = {.size = size, .flags = flags, .device = call->thread->device};
    void *memory = NULL;
    if (size > PTRDIFF_MAX || posix_memalign(&memory, 512, size) != 0) {
        return cudaErrorMemoryAllocation;
    }
    p.memory = memory;
    if (!host_add(&p)) {
        free(memory);
        return cudaErrorMemoryAllocation;
    }
    *pointer = memory;
    return cudaSuccess;
}

/* Queued copies may still use the memory, so all work is waited for. */
static int host_free(sim_call *call, void *pointer)
{
    pinned *p = host_find(pointer, 1);
    if (!p || p->memory != pointer || p->is_registered) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "a free of what is not page-locked host memory");
    }
    host_wait_device(-1);
    p = host_find(pointer, 1); /* waiting may have run a host function, beside other threads */
    if (p && p->memory == pointer) {
        host_remove(p);
        free(pointer);
    }
    return cudaSuccess;
}

SIM_CALL(cudaMallocHost, (void **pointer, size_t size),
         host_alloc(&call, pointer, size, cudaHostAllocDefault))

SIM_CALL(cudaHostAlloc, (void **pointer, size_t size, unsigned int flags),
         host_alloc(&call, pointer, size, flags))

cudaError_t gmd_sim_cudaFreeHost(void *pointer)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaFreeHost) && pointer) {
        call.record.result = host_free(&call, pointer);
    }
    return (cudaError_t)call_leave(&call);
}

SIM_DRIVER_CALL(cuMemHostAlloc, (void **pointer, size_t size, unsigned int flags),
                host_alloc(&call, pointer, size, flags))
SIM_DRIVER_CALL(cuMemAllocHost_v2, (void **pointer, size_t size),
                host_alloc(&call, pointer, size, cudaHostAllocDefault))

SIM_DRIVER_CALL(cuMemFreeHost, (void *pointer), host_free(&call, pointer))

/* --- registering ------------------------------------------------------------------------- */

static int host_register(sim_call *call, void *pointer, size_t size, unsigned flags)
{
    const unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped |
                           cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
    if (!pointer || size == 0 || (flags & ~known) || (uintptr_t)pointer + size < size) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "nothing to register, a range beyond the address space, or unknown "
                           "flags");
    }
    if (flags & cudaHostRegisterIoMemory) {
        return cudaErrorNotSupported;
    }
    const pinned *allocated = host_find(pointer, 1);
    if (allocated && !allocated->is_registered) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "the memory is page-locked by its allocation");
    }
    if (host_overlaps(pointer, size)) {
        return call_misuse(call, cudaErrorHostMemoryAlreadyRegistered,
                           "part of the memory is page-locked already");
    }
    pinned p = {.memory = pointer,
                .size = size,
                .flags = flags,
                .device = call->thread->device,
                .is_registered = true};
    return host_add(&p) ? cudaSuccess : cudaErrorMemoryAllocation;
}

static int host_unregister(sim_call *call, void *pointer)
{
    pinned *p = host_find(pointer, 1);
    if (!pointer || (p && !p->is_registered)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "nothing to unregister, or memory that was allocated page-locked");
    }
    if (!p || p->memory != pointer) {
        return call_misuse(call, cudaErrorHostMemoryNotRegistered,
                           "the address is not the start of registered memory");
    }
    host_wait_device(-1);
    p = host_find(pointer, 1); /* as above */
    if (p && p->memory == pointer) {
        host_remove(p);
    }
    return cudaSuccess;
}

SIM_CALL(cudaHostRegister, (void *pointer, size_t size, unsigned int flags),
         host_register(&call, pointer, size, flags))

SIM_CALL(cudaHostUnregister, (void *pointer), host_unregister(&call, pointer))

SIM_DRIVER_CALL(cuMemHostRegister_v2, (void *pointer, size_t size, unsigned int flags),
                host_register(&call, pointer, size, flags))

SIM_DRIVER_CALL(cuMemHostUnregister, (void *pointer), host_unregister(&call, pointer))

/* --- asking ------------------------------------------------------------------------------ */

static int device_pointer(sim_call *call, void **out, void *pointer, unsigned flags)
{
    if (!out || flags || !host_find(pointer, 1)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no place for the pointer, flags other than 0, or host memory that is "
                           "not page-locked");
    }
    *out = pointer; /* unified addressing */
    return cudaSuccess;
}

SIM_CALL(cudaHostGetDevicePointer, (void **out, void *pointer, unsigned int flags),
         device_pointer(&call, out, pointer, flags))

CUresult gmd_sim_cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *pointer, unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemHostGetDevicePointer_v2)) {
        void *found = NULL;
        call.record.result = call.thread->has_context
                                 ? device_pointer(&call, out ? &found : NULL, pointer, flags)
                                 : (int)CUDA_ERROR_INVALID_CONTEXT;
        if (!call.record.result && out) {
            *out = (uintptr_t)found;
        }
    }
    return (CUresult)call_leave(&call);
}

/* With unified addressing all page-locked memory is mapped, and what is allocated portable. */
static int flags_of(sim_call *call, unsigned *flags, void *pointer)
{
    const pinned *p = host_find(pointer, 1);
    if (!flags || !p) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no place for the flags, or host memory that is not page-locked");
    }
    *flags = p->flags | cudaHostAllocMapped | (p->is_registered ? 0 : cudaHostAllocPortable);
    return cudaSuccess;
}

SIM_CALL(cudaHostGetFlags, (unsigned int *flags, void *pointer), flags_of(&call, flags, pointer))

SIM_DRIVER_CALL(cuMemHostGetFlags, (unsigned int *flags, void *pointer),
                flags_of(&call, flags, pointer))
