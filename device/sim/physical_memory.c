/* Physical memory of cuMemCreate: handles, properties, granularity. */
#define _GNU_SOURCE /* memfd_create */
#include "physical_memory.h"

#include "marks.h"
#include "state.h"

#include "gmd_assert.h"
#include "gmd_grow.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    physical *list; /* [0] is not used */
    uint32_t count, capacity, free;
    uint64_t creations; /* of the process: tells the lives of a slot apart */
} memories;

enum { SLOT_BITS = 20, SLOT_MAX = 1 << SLOT_BITS, LIFE_BITS = HANDLE_SERIAL_BITS - SLOT_BITS };

uint32_t physical_number(const physical *p)
{
    return (uint32_t)(p - memories.list);
}

physical *physical_at(uint32_t number)
{
    return &memories.list[number];
}

physical *physical_find(CUmemGenericAllocationHandle handle)
{
    uint64_t slot = handle_serial(handle, HANDLE_MEMORY) & (SLOT_MAX - 1);
    return slot && slot < memories.count && memories.list[slot].handle == handle
               ? &memories.list[slot]
               : NULL;
}

void physical_forget_if_unused(physical *p)
{
    if (p->references || p->mapped) {
        return;
    }
    sim_device *d = &sim.devices[p->properties.location.id];
    GMD_ASSERT(d->physical_bytes >= p->size && d->handle_count, "what goes was counted");
    d->physical_bytes -= p->size;
    d->handle_count--;
    if (p->file >= 0) {
        close(p->file);
    }
    marks_forget(p->place, p->size);
    p->handle = 0;
    p->next_free = memories.free;
    memories.free = (uint32_t)(p - memories.list);
}

/* An anonymous file of this size; -1: the host has none to give. */
static int new_file(uint64_t size)
{
    int file = memfd_create("gmd physical memory", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, (off_t)size) != 0) {
        close(file);
        file = -1;
    }
    return file;
}

static const char *wrong_properties(const CUmemAllocationProp *p)
{
    if (!p) {
        return "no properties are given";
    }
    if (p->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        p->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return "memory other than pinned memory of a device is not simulated";
    }
    return NULL;
}

/* 0: the host has no memory, or there are too many. */
static uint32_t new_slot(void)
{
    uint32_t slot = memories.free;
    if (slot) {
        memories.free = memories.list[slot].next_free;
        return slot;
    }
    if (memories.count == SLOT_MAX ||
        !GMD_GROW(&memories.list, &memories.capacity, memories.count + 1)) {
        return 0;
    }
    return memories.count++;
}

int physical_create(sim_call *call, CUmemGenericAllocationHandle *out, size_t size,
                    const CUmemAllocationProp *properties, unsigned long long flags)
{
    const char *wrong = wrong_properties(properties);
    if (wrong || !out || flags || size == 0 || !is_whole_pages(size)) {
        return call_misuse(call, CUDA_ERROR_INVALID_VALUE,
                           wrong ? wrong
                                 : "no place for the handle, unknown flags, or a size that is not "
                                   "whole pages of 2 MiB");
    }
    if (!device_exists(properties->location.id)) {
        return call_misuse(call, CUDA_ERROR_INVALID_DEVICE, "there is no device of this number");
    }
    if (properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_FABRIC) {
        return CUDA_ERROR_NOT_PERMITTED; /* as without the fabric's manager: allocators fall back */
    }
    if (properties->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return call_misuse(call, CUDA_ERROR_INVALID_VALUE, "a handle type of another system");
    }
    sim_device *d = &sim.devices[properties->location.id];
    if (size > memory_left(properties->location.id)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint32_t slot = new_slot();
    if (!slot) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    int file = sim.config.backed ? new_file(size) : -1;
    if (sim.config.backed && file < 0) {
        memories.list[slot] = (physical){.next_free = memories.free};
        memories.free = slot;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t life = ++memories.creations & ((1u << LIFE_BITS) - 1);
    physical *p = &memories.list[slot];
    *p = (physical){.handle = handle_make(HANDLE_MEMORY, life << SLOT_BITS | slot),
                    .properties = *properties,
                    .size = size,
                    .place = marks_new_place(size),
                    .file = file,
                    .references = 1};
    d->physical_bytes += size;
    d->handle_count++;
    *out = p->handle;
    return CUDA_SUCCESS;
}

int physical_none(sim_call *call)
{
    return call_misuse(call, CUDA_ERROR_INVALID_VALUE,
                       "the memory handle was never given, or is released");
}

void physical_begin_check(void)
{
    for (uint32_t i = 1; i < memories.count; i++) {
        memories.list[i].pages_seen = 0;
    }
}

const char *physical_violation(uint64_t bytes[GMD_SIM_DEVICE_MAX])
{
    uint64_t handles[GMD_SIM_DEVICE_MAX] = {0}, mapped[GMD_SIM_DEVICE_MAX] = {0};
    for (uint32_t i = 1; i < memories.count; i++) {
        const physical *p = &memories.list[i];
        if (p->pages_seen != (p->handle ? p->mapped : 0)) {
            return "a physical memory counts the pages of it that are mapped";
        }
        if (p->handle && !p->references && !p->mapped) {
            return "a physical memory that nothing refers to is given back";
        }
        if (p->handle) {
            bytes[p->properties.location.id] += p->size;
            handles[p->properties.location.id]++;
            mapped[p->properties.location.id] += p->mapped * (uint64_t)GMD_SIM_PAGE_BYTES;
        }
    }
    for (uint32_t d = 0; d < sim.config.device_count; d++) {
        if (sim.devices[d].handle_count != handles[d] || sim.devices[d].mapped_bytes != mapped[d]) {
            return "a device counts its handles, and the bytes of them that are mapped";
        }
    }
    return NULL;
}

void physical_reset(void)
{
    for (uint32_t i = 1; i < memories.count; i++) {
        if (memories.list[i].handle && memories.list[i].file >= 0) {
            close(memories.list[i].file);
        }
    }
    memories.count = 1;
    memories.free = 0;
}
