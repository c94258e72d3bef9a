/* nvtx_memory.h - gmd's own declaration of the part of NVTX's memory extension that it uses: heaps
 * and their regions (nvtx3/nvToolsExtMem.h), and how a tool gets at them (nvtxExtInit.h). The test
 * allocator/nvtx_toolkit compares it with the toolkit's headers where there is a toolkit. */
#ifndef NVTX_MEMORY_H
#define NVTX_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* The variable that names the tool's library, and what the library exports. */
#define NVTX_TOOL_VARIABLE  "NVTX_INJECTION64_PATH"
#define NVTX_START_CORE     "InitializeInjectionNvtx2"
#define NVTX_START_EXTENDED "InitializeInjectionNvtxExtension"

enum {
    NVTX_VERSION_GIVEN = 3,
    NVTX_MEMORY_MODULE = 1,
    NVTX_MEMORY_COMPATIBLE = 0x0102,
    NVTX_SUB_ALLOCATOR = 1,   /* what a heap is for */
    NVTX_VIRTUAL_ADDRESS = 1, /* what its memory is */
    NVTX_BY_POINTER = 1,      /* how a region is named */
    NVTX_EXPORT_CALLBACKS = 1,
    NVTX_CORE2_MODULE = 5,
    NVTX_CORE2_DOMAIN_CREATE = 12,
    NVTX_CORE2_SLOTS = 16,
};

/* Places among the functions of the extension, which the tool fills in; there are as many as this.
 */
enum {
    NVTX_HEAP_REGISTER = 0,
    NVTX_HEAP_UNREGISTER = 1,
    NVTX_HEAP_RESET = 2,
    NVTX_REGIONS_REGISTER = 3,
    NVTX_REGIONS_UNREGISTER = 5,
    NVTX_MEMORY_SLOTS = 63,
};

typedef struct nvtx_range {
    size_t bytes;
    const void *address;
} nvtx_range;

typedef struct nvtx_heap {
    uint16_t compatible, struct_bytes;
    uint32_t reserved;
    uint32_t usage, type;
    size_t description_bytes;
    const nvtx_range *description;
    uint32_t category, message_type;
    const char *message;
} nvtx_heap;

typedef struct nvtx_regions {
    uint16_t compatible, struct_bytes;
    uint32_t type;
    void *heap;
    size_t count, element_bytes;
    const nvtx_range *elements;
    void **handles; /* out */
} nvtx_regions;

typedef struct nvtx_former_regions {
    uint16_t compatible, struct_bytes;
    uint32_t named_by;
    size_t count, element_bytes;
    const void *const *elements;
} nvtx_former_regions;

typedef void *nvtx_heap_register(void *domain, const nvtx_heap *heap);
typedef void nvtx_heap_unregister(void *domain, void *heap);
typedef void nvtx_heap_reset(void *domain, void *heap); /* it has no regions any more */
typedef void nvtx_regions_register(void *domain, const nvtx_regions *regions);
typedef void nvtx_regions_unregister(void *domain, const nvtx_former_regions *regions);

/* --- how a tool gets the functions -------------------------------------------------------- */

typedef struct nvtx_segment {
    size_t number, slot_count;
    intptr_t *slots; /* 0: not taken; -1 is for a function that the tool does not want */
} nvtx_segment;

typedef struct nvtx_module {
    uint16_t version, struct_bytes, module, compatible;
    size_t segment_count;
    nvtx_segment *segments;
    intptr_t (*export_function)(uint32_t number);
    const void *info;
} nvtx_module;

typedef int nvtx_start_extended(nvtx_module *module); /* 0: it does not want to */

typedef void nvtx_function(void);

typedef struct nvtx_callbacks {
    size_t struct_bytes;
    int (*function_table)(int module, nvtx_function ****table,
                          unsigned *size); /* 1: there is one */
} nvtx_callbacks;

typedef int nvtx_start_core(const void *(*export_table)(uint32_t number)); /* likewise */
typedef void *nvtx_domain_create(const char *name);

#endif
