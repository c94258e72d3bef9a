/* nvtx_memory.h agrees with the CUDA toolkit of this machine: numbers, layouts. */
#include "gmd_test.h"

#include <nvtx3/nvToolsExtMem.h>

#include "nvtx_memory.h"

#define SAME_PLACE(ours, field, theirs, their_field)                                               \
    assert_int_equal(offsetof(ours, field), offsetof(theirs, their_field))

TEST(numbers_agree)
{
    assert_int_equal(NVTX_VERSION_GIVEN, NVTX_VERSION);
    assert_int_equal(NVTX_MEMORY_MODULE, NVTX_EXT_MODULEID_MEM);
    assert_int_equal(NVTX_MEMORY_COMPATIBLE, NVTX_EXT_COMPATID_MEM);
    assert_int_equal(NVTX_SUB_ALLOCATOR, NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR);
    assert_int_equal(NVTX_VIRTUAL_ADDRESS, NVTX_MEM_TYPE_VIRTUAL_ADDRESS);
    assert_int_equal(NVTX_BY_POINTER, NVTX_MEM_REGION_REF_TYPE_POINTER);
    assert_int_equal(NVTX_EXPORT_CALLBACKS, NVTX_ETID_CALLBACKS);
    assert_int_equal(NVTX_CORE2_MODULE, NVTX_CB_MODULE_CORE2);
    assert_int_equal(NVTX_CORE2_DOMAIN_CREATE, NVTX_CBID_CORE2_DomainCreateA);
    assert_int_equal(NVTX_CORE2_SLOTS, NVTX_CBID_CORE2_SIZE);
    assert_int_equal(NVTX_MEMORY_SLOTS, NVTX_EXT_MEM_SLOT_COUNT);
}

TEST(places_of_functions_agree)
{
    assert_int_equal(NVTX_HEAP_REGISTER, NVTX3EXT_CBID_nvtxMemHeapRegister);
    assert_int_equal(NVTX_HEAP_UNREGISTER, NVTX3EXT_CBID_nvtxMemHeapUnregister);
    assert_int_equal(NVTX_HEAP_RESET, NVTX3EXT_CBID_nvtxMemHeapReset);
    assert_int_equal(NVTX_REGIONS_REGISTER, NVTX3EXT_CBID_nvtxMemRegionsRegister);
    assert_int_equal(NVTX_REGIONS_UNREGISTER, NVTX3EXT_CBID_nvtxMemRegionsUnregister);
}

TEST(layouts_of_what_is_told_agree)
{
    assert_int_equal(sizeof(nvtx_range), sizeof(nvtxMemVirtualRangeDesc_t));
    SAME_PLACE(nvtx_range, address, nvtxMemVirtualRangeDesc_t, ptr);
    assert_int_equal(sizeof(nvtx_heap), sizeof(nvtxMemHeapDesc_t));
    SAME_PLACE(nvtx_heap, usage, nvtxMemHeapDesc_t, usage);
    SAME_PLACE(nvtx_heap, type, nvtxMemHeapDesc_t, type);
    SAME_PLACE(nvtx_heap, description_bytes, nvtxMemHeapDesc_t, typeSpecificDescSize);
    SAME_PLACE(nvtx_heap, description, nvtxMemHeapDesc_t, typeSpecificDesc);
    SAME_PLACE(nvtx_heap, message, nvtxMemHeapDesc_t, message);
    assert_int_equal(sizeof(nvtx_regions), sizeof(nvtxMemRegionsRegisterBatch_t));
    SAME_PLACE(nvtx_regions, type, nvtxMemRegionsRegisterBatch_t, regionType);
    SAME_PLACE(nvtx_regions, heap, nvtxMemRegionsRegisterBatch_t, heap);
    SAME_PLACE(nvtx_regions, count, nvtxMemRegionsRegisterBatch_t, regionCount);
    SAME_PLACE(nvtx_regions, elements, nvtxMemRegionsRegisterBatch_t, regionDescElements);
    SAME_PLACE(nvtx_regions, handles, nvtxMemRegionsRegisterBatch_t, regionHandleElementsOut);
    assert_int_equal(sizeof(nvtx_former_regions), sizeof(nvtxMemRegionsUnregisterBatch_t));
    SAME_PLACE(nvtx_former_regions, named_by, nvtxMemRegionsUnregisterBatch_t, refType);
    SAME_PLACE(nvtx_former_regions, count, nvtxMemRegionsUnregisterBatch_t, refCount);
    SAME_PLACE(nvtx_former_regions, elements, nvtxMemRegionsUnregisterBatch_t, refElements);
}

TEST(layouts_of_how_a_tool_is_started_agree)
{
    assert_int_equal(sizeof(nvtx_segment), sizeof(nvtxExtModuleSegment_t));
    SAME_PLACE(nvtx_segment, slots, nvtxExtModuleSegment_t, functionSlots);
    assert_int_equal(sizeof(nvtx_module), sizeof(nvtxExtModuleInfo_t));
    SAME_PLACE(nvtx_module, module, nvtxExtModuleInfo_t, moduleId);
    SAME_PLACE(nvtx_module, compatible, nvtxExtModuleInfo_t, compatId);
    SAME_PLACE(nvtx_module, segments, nvtxExtModuleInfo_t, segments);
    SAME_PLACE(nvtx_module, export_function, nvtxExtModuleInfo_t, getExportFunction);
    SAME_PLACE(nvtx_callbacks, function_table, NvtxExportTableCallbacks, GetModuleFunctionTable);
}
