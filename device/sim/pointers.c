/* What a pointer is: whose memory, which device's, where it begins. */
#include "address_map.h"
#include "calls.h"
#include "contexts.h"
#include "host_memory.h"
#include "pools.h"
#include "virtual_memory.h"

#include <string.h>

static int describe(sim_call *call, struct cudaPointerAttributes *out, const void *pointer)
{
    if (!out) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the attributes");
    }
    memset(out, 0, sizeof *out);
    const allocation *a = map_find((uintptr_t)pointer);
    uint64_t bad;
    const pinned *p;
    if (a && (!a->reservation || virtual_is_mapped(a, (uintptr_t)pointer, &bad))) {
        out->type = cudaMemoryTypeDevice;
        out->device = a->device;
        out->devicePointer = (void *)(uintptr_t)pointer;
    } else if ((p = host_find(pointer, 1)) != NULL) {
        out->type = cudaMemoryTypeHost;
        out->device = p->device;
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
    uint64_t start, size, buffer_id;
    cudaMemPool_t pool; /* NULL: of none */
} memory_facts;

static bool find_facts(uint64_t address, memory_facts *out)
{
    const allocation *a = map_find(address);
    uint64_t start;
    const pinned *p;
    if (a && (!a->reservation || virtual_is_mapped(a, address, &start))) {
        *out = (memory_facts){.is_device = true,
                              .device = a->device,
                              .start = a->address,
                              .size = a->size,
                              .buffer_id = a->buffer_id,
                              .pool = a->pool_block ? pool_of_block(a->pool_block) : NULL};
        return true;
    }
    if ((p = host_find((const void *)(uintptr_t)address, 1)) != NULL) {
        *out = (memory_facts){.device = p->device,
                              .start = (uintptr_t)p->memory,
                              .size = p->size,
                              .buffer_id = p->buffer_id};
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
        *(CUcontext *)out = facts->pool ? NULL : context_of(facts->device);
        return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = facts->is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)out = address;
        return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)out = facts->is_device ? NULL : (void *)(uintptr_t)address;
        return !facts->is_device;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: /* the default, which nothing here changes */
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: /* there are no other processes */
        *(unsigned *)out = 0; /* four bytes, also where the answer is yes or no */
        return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)out = facts->buffer_id;
        return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)out = 0;
        return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)out = facts->pool;
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
        *(unsigned *)out = 1;
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

/* What is not there, or not of this memory, is answered with zeros; a range is left as it was, and
 * memory that CUDA does not know is the host's. */
static void put_nothing(bool is_known, uint64_t address, CUpointer_attribute which, void *out)
{
    switch (which) {
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = 0;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = cudaInvalidDeviceId;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)out = is_known ? NULL : (void *)(uintptr_t)address;
        break;
    default:
        *(uint64_t *)out = 0;
    }
}

static bool is_pointer_attribute(CUpointer_attribute which)
{
    memory_facts none = {.is_device = false};
    uint64_t room;
    return put_fact(&none, 0, which, &room);
}

static int tell_all(sim_call *call, unsigned count, const CUpointer_attribute *which, void **out,
                    CUdeviceptr pointer)
{
    memory_facts facts;
    bool is_known = find_facts(pointer, &facts), is_complete = count && which && out;
    for (unsigned i = 0; is_complete && i < count; i++) {
        is_complete = out[i] && is_pointer_attribute(which[i]);
    }
    if (!is_complete) {
        return call_misuse(call, CUDA_ERROR_INVALID_VALUE,
                           "no questions, no place for an answer, or an attribute that CUDA does "
                           "not have");
    }
    for (unsigned i = 0; i < count; i++) {
        if (!is_known || !put_fact(&facts, pointer, which[i], out[i])) {
            put_nothing(is_known, pointer, which[i], out[i]);
        }
    }
    return CUDA_SUCCESS;
}

CUresult gmd_sim_cuPointerGetAttributes(unsigned count, CUpointer_attribute *which, void **out,
                                        CUdeviceptr pointer)
{
    sim_call call;
    if (call_enter(&call, CALL_cuPointerGetAttributes)) {
        call.record.result = tell_all(&call, count, which, out, pointer);
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
