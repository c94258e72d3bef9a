/* The driver's functions of virtual memory management. */
#include "calls.h"
#include "physical_memory.h"
#include "virtual_memory.h"

/* --- physical memory --------------------------------------------------------------------- */

CUresult gmd_sim_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                             const CUmemAllocationProp *properties, unsigned long long flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemCreate)) {
        call.record.result = physical_create(&call, handle, size, properties, flags);
        call.record.size = size;
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemRelease)) {
        physical *p = physical_find(handle);
        if (p && p->references) {
            p->references--;
            physical_forget_if_unused(p);
        } else {
            call.record.result = physical_none(&call);
        }
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                        CUmemGenericAllocationHandle handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemGetAllocationPropertiesFromHandle)) {
        const physical *p = physical_find(handle);
        if (p && properties) {
            *properties = p->properties;
        } else {
            call.record.result = physical_none(&call);
        }
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuMemGetAllocationGranularity(size_t *granularity,
                                               const CUmemAllocationProp *properties,
                                               CUmemAllocationGranularity_flags which)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemGetAllocationGranularity)) {
        bool is_complete = granularity && properties;
        if (!is_complete || which > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
            call.record.result =
                call_misuse(&call, CUDA_ERROR_INVALID_VALUE,
                            "no properties, no place for the answer, or an unknown option");
        } else {
            *granularity = GMD_SIM_PAGE_BYTES;
        }
    }
    return (CUresult)call_leave(&call);
}

/* --- address ranges, mapping, access ------------------------------------------------------ */

CUresult gmd_sim_cuMemAddressReserve(CUdeviceptr *pointer, size_t size, size_t alignment,
                                     CUdeviceptr wanted, unsigned long long flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemAddressReserve)) {
        call.record.result = virtual_reserve(&call, pointer, size, alignment, wanted, flags);
        call.record.size = size;
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuMemAddressFree(CUdeviceptr pointer, size_t size)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemAddressFree)) {
        call.record.result = virtual_free(&call, pointer, size);
        call.record.address = pointer;
        call.record.size = size;
    }
    return (CUresult)call_leave(&call);
}

static void note_mapping(sim_call *call, gmd_sim_call_kind kind, uint64_t address, uint64_t size)
{
    call->record.kind = kind;
    call->record.address = address;
    call->record.size = size;
}

CUresult gmd_sim_cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemMap)) {
        call.record.result = virtual_map(&call, pointer, size, offset, handle, flags);
        note_mapping(&call, GMD_SIM_CALL_MAP, pointer, size);
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuMemUnmap(CUdeviceptr pointer, size_t size)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemUnmap)) {
        call.record.result = virtual_unmap(&call, pointer, size);
        note_mapping(&call, GMD_SIM_CALL_UNMAP, pointer, size);
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *access,
                                size_t count)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemSetAccess)) {
        call.record.result = virtual_set_access(&call, pointer, size, access, count);
        call.record.address = pointer;
        call.record.size = size;
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                                CUdeviceptr pointer)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemGetAccess)) {
        call.record.result = virtual_get_access(&call, flags, location, pointer);
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *pointer)
{
    sim_call call;
    if (call_enter(&call, CALL_cuMemRetainAllocationHandle)) {
        call.record.result = virtual_retain(&call, handle, (uintptr_t)pointer);
    }
    return (CUresult)call_leave(&call);
}
