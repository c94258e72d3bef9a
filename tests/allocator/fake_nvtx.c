#include "fake_nvtx.h"

#include "nvtx_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

fake_nvtx fake_nvtx_state;

static int domain; /* its address is the handle */

nvtx_start_core InitializeInjectionNvtx2;
nvtx_start_extended InitializeInjectionNvtxExtension;

static void *create_domain(const char *name)
{
    snprintf(fake_nvtx_state.domain, sizeof fake_nvtx_state.domain, "%s", name);
    return &domain;
}

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t number))
{
    const nvtx_callbacks *callbacks = export_table(NVTX_EXPORT_CALLBACKS);
    nvtx_function ***table = NULL;
    nvtx_domain_create *create = create_domain;
    unsigned size = 0;
    if (!callbacks || !callbacks->function_table(NVTX_CORE2_MODULE, &table, &size) ||
        size <= NVTX_CORE2_DOMAIN_CREATE) {
        return 0;
    }
    memcpy(table[NVTX_CORE2_DOMAIN_CREATE], &create, sizeof create);
    return 1;
}

static void check(bool is_right)
{
    fake_nvtx_state.bad_calls += !is_right;
}

static void *register_heap(void *in, const nvtx_heap *heap)
{
    fake_nvtx *s = &fake_nvtx_state;
    check(in == &domain && heap->compatible == NVTX_MEMORY_COMPATIBLE &&
          heap->struct_bytes == sizeof *heap && heap->usage == NVTX_SUB_ALLOCATOR &&
          heap->type == NVTX_VIRTUAL_ADDRESS && s->heap_count < FAKE_HEAPS);
    fake_region *made = &s->heaps[s->heap_count++ % FAKE_HEAPS];
    *made = (fake_region){(uintptr_t)heap->description->address, heap->description->bytes, made};
    return made;
}

static void reset_heap(void *in, void *heap)
{
    fake_nvtx *s = &fake_nvtx_state;
    size_t kept = 0;
    check(in == &domain);
    for (size_t i = 0; i < s->region_count; i++) {
        if (s->regions[i].heap != heap) {
            s->regions[kept++] = s->regions[i];
        }
    }
    s->region_count = kept;
}

static void unregister_heap(void *in, void *heap)
{
    fake_region *gone = heap;
    check(gone && gone->heap == heap);
    reset_heap(in, heap);
    if (gone) {
        gone->heap = NULL;
    }
}

static void register_regions(void *in, const nvtx_regions *regions)
{
    fake_nvtx *s = &fake_nvtx_state;
    const fake_region *heap = regions->heap;
    check(in == &domain && regions->struct_bytes == sizeof *regions && regions->handles && heap &&
          heap->heap == heap && s->region_count + regions->count <= FAKE_REGIONS);
    for (size_t i = 0; i < regions->count; i++) {
        fake_region made = {(uintptr_t)regions->elements[i].address, regions->elements[i].bytes,
                            regions->heap};
        check(heap && made.address >= heap->address &&
              made.address + made.bytes <= heap->address + heap->bytes);
        for (size_t k = 0; k < s->region_count; k++) {
            check(s->regions[k].address >= made.address + made.bytes ||
                  made.address >= s->regions[k].address + s->regions[k].bytes);
        }
        s->regions[s->region_count++] = made;
    }
}

static void unregister_regions(void *in, const nvtx_former_regions *regions)
{
    fake_nvtx *s = &fake_nvtx_state;
    check(in == &domain && regions->named_by == NVTX_BY_POINTER && regions->count == 1);
    size_t i = 0;
    while (i < s->region_count && s->regions[i].address != (uintptr_t)regions->elements[0]) {
        i++;
    }
    check(i < s->region_count);
    if (i < s->region_count) {
        s->regions[i] = s->regions[--s->region_count];
    }
}

static void put(intptr_t *slots, size_t which, const void *function)
{
    memcpy(&slots[which], function, sizeof slots[which]);
}

int InitializeInjectionNvtxExtension(nvtx_module *module)
{
    nvtx_heap_register *heap = register_heap;
    nvtx_heap_unregister *heap_end = unregister_heap;
    nvtx_heap_reset *heap_reset = reset_heap;
    nvtx_regions_register *regions = register_regions;
    nvtx_regions_unregister *regions_end = unregister_regions;
    intptr_t *slots = module->segments[0].slots;
    if (fake_nvtx_state.refuses || module->module != NVTX_MEMORY_MODULE ||
        module->segments[0].slot_count <= NVTX_REGIONS_UNREGISTER) {
        return 0;
    }
    put(slots, NVTX_HEAP_REGISTER, &heap);
    put(slots, NVTX_HEAP_UNREGISTER, &heap_end);
    put(slots, NVTX_HEAP_RESET, &heap_reset);
    put(slots, NVTX_REGIONS_REGISTER, &regions);
    put(slots, NVTX_REGIONS_UNREGISTER, &regions_end);
    return 1;
}
