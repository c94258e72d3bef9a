/* What a pointer is: whose memory, which device's, where it begins. */
#include "state.h"

#include <string.h>

static int describe(sim_call *call, struct cudaPointerAttributes *out, const void *pointer)
{
    if (!out) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the attributes");
    }
    memset(out, 0, sizeof *out);
    const allocation *a = map_find((uintptr_t)pointer);
    uint64_t bad;
    host_range pinned;
    if (a && (!a->reservation || virtual_is_mapped(a, (uintptr_t)pointer, &bad))) {
        out->type = cudaMemoryTypeDevice;
        out->device = a->device;
        out->devicePointer = (void *)(uintptr_t)pointer;
    } else if (host_find(pointer, 1, &pinned)) {
        out->type = cudaMemoryTypeHost;
        out->device = pinned.device;
        out->devicePointer = out->hostPointer = (void *)(uintptr_t)pointer;
    } else {
        out->type = cudaMemoryTypeUnregistered;
        out->device = cudaInvalidDeviceId;
        out->hostPointer = (void *)(uintptr_t)pointer;
    }
    return cudaSuccess;
}

SIM_CALL(cudaPointerGetAttributes, (struct cudaPointerAttributes * out, const void *pointer),
         describe(&call, out, pointer))

/* What the driver's questions are answered from. */
typedef struct memory_facts {
    bool is_device;
    int device;
    uint64_t start, size;
} memory_facts;

static bool find_facts(uint64_t address, memory_facts *out)
{
    const allocation *a = map_find(address);
    uint64_t start;
    host_range pinned;
    if (a && (!a->reservation || virtual_is_mapped(a, address, &start))) {
        *out = (memory_facts){
            .is_device = true, .device = a->device, .start = a->address, .size = a->size};
        return true;
    }
    if (host_find((const void *)(uintptr_t)address, 1, &pinned)) {
        *out =
            (memory_facts){.device = pinned.device, .start = pinned.address, .size = pinned.size};
        return true;
    }
    return false;
}

/* False: an attribute that is not simulated. */
static bool put_fact(const memory_facts *facts, uint64_t address, CUpointer_attribute which,
                     void *out)
{
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)out = context_of(facts->device);
        return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = facts->is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)out = address;
        return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)out = (void *)(uintptr_t)address;
        return !facts->is_device;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(bool *)out = false;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = facts->device;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)out = facts->start;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)out = facts->size;
        return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(bool *)out = true;
        return true;
    default:
        return false;
    }
}

CUresult gmd_sim_cuPointerGetAttribute(void *out, CUpointer_attribute which, CUdeviceptr pointer)
{
    sim_call call;
    if (call_enter(&call, CALL_cuPointerGetAttribute)) {
        memory_facts facts;
        if (!out || !find_facts(pointer, &facts) || !put_fact(&facts, pointer, which, out)) {
            call.record.result =
                call_misuse(&call, CUDA_ERROR_INVALID_VALUE,
                            "no place for the answer, memory that CUDA does not know, or an "
                            "attribute that it does not have");
        }
    }
    return (CUresult)call_leave(&call);
}

static int address_range(sim_call *call, CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
    memory_facts facts;
    if (!find_facts(pointer, &facts) || !facts.is_device) {
        return call_misuse(call, CUDA_ERROR_NOT_FOUND, "the address is in no device memory");
    }
    if (base) {
        *base = facts.start;
    }
    if (size) {
        *size = facts.size;
    }
    return CUDA_SUCCESS;
}

SIM_DRIVER_CALL(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *size, CUdeviceptr pointer),
                address_range(&call, base, size, pointer))
