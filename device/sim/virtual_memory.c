/* Virtual memory management: address ranges, what physical memory is mapped where, and who may
 * touch it, each with a life of its own as in the driver. Every reservation has one small record
 * for each of its pages. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "virtual_memory.h"

#include "mapped_pages.h"
#include "physical_memory.h"
#include "placement.h"
#include "state.h"

#include "gmd_assert.h"
#include "gmd_grow.h"
#include "gmd_min.h"

#include <stdlib.h>
#include <sys/mman.h>

typedef struct reservation {
    uint64_t address, size; /* size 0: the slot is free */
    mapped_page *pages;
    unsigned char *data; /* host addresses, inaccessible where nothing is mapped; NULL: unbacked */
    uint64_t mapped_count;
    int device; /* current when it was made: whose statistics it counts in */
    uint32_t next_free;
} reservation;

static struct {
    reservation *list; /* [0] is not used */
    uint32_t count, capacity, free;
} ranges;

static uint64_t page_count(uint64_t reserved)
{
    return reserved / GMD_SIM_PAGE_BYTES;
}

/* --- address ranges ---------------------------------------------------------------------- */

/* The reservation that holds the whole range, which begins and ends at pages; NULL: none. */
static reservation *reservation_of(uint64_t address, uint64_t size)
{
    const allocation *a = map_find_range(address, size);
    if (!a || !a->reservation || size == 0 || !is_whole_pages(address) || !is_whole_pages(size)) {
        return NULL;
    }
    return &ranges.list[a->reservation];
}

static mapped_page *page_at(const reservation *r, uint64_t address)
{
    return &r->pages[(address - r->address) / GMD_SIM_PAGE_BYTES];
}

/* As many host addresses, which nobody can touch yet. */
static unsigned char *host_addresses(uint64_t size)
{
    void *data = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static void give_back(mapped_page *pages, unsigned char *data, uint64_t reserved)
{
    if (pages) {
        mapped_pages_give_back(pages, page_count(reserved));
    }
    if (data) {
        munmap(data, reserved);
    }
}

/* The slot of the next reservation, which stays free until it is made. 0: the host has no memory.
 */
static uint32_t free_slot(void)
{
    if (!ranges.free && GMD_GROW(&ranges.list, &ranges.capacity, ranges.count + 1)) {
        ranges.free = ranges.count++;
        ranges.list[ranges.free] = (reservation){.size = 0};
    }
    return ranges.free;
}

static bool insert(uint64_t address, uint64_t size, int device)
{
    mapped_page *pages = mapped_pages_take(page_count(size));
    unsigned char *data = sim.config.backed ? host_addresses(size) : NULL;
    if (!pages || (sim.config.backed && !data)) {
        give_back(pages, data, size);
        return false;
    }
    uint32_t slot = free_slot();
    allocation *a = slot ? map_insert(address, size) : NULL;
    if (!a) {
        give_back(pages, data, size);
        return false;
    }
    ranges.free = ranges.list[slot].next_free;
    a->size = size;
    a->device = device;
    a->reservation = slot;
    a->buffer_id = ++sim.buffers;
    a->data = data;
    ranges.list[slot] = (reservation){
        .address = address, .size = size, .pages = pages, .data = data, .device = device};
    sim.devices[device].reservation_count++;
    sim.devices[device].reservation_bytes += size;
    return true;
}

int virtual_reserve(sim_call *call, CUdeviceptr *out, size_t size, size_t alignment,
                    CUdeviceptr wanted, unsigned long long flags)
{
    if (!out || flags || size == 0 || !is_whole_pages(size) || (alignment & (alignment - 1))) {
        return call_misuse(call, CUDA_ERROR_INVALID_VALUE,
                           "no place for the address, unknown flags, an alignment that is no power "
                           "of two, or a size that is not whole pages of 2 MiB");
    }
    if (size > ADDRESS_SPACE_END || alignment > ADDRESS_SPACE_END) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    alignment = gmd_max(alignment, GMD_SIM_PAGE_BYTES);
    uint64_t address = placement_reserve(size, alignment, wanted);
    if (!address || !insert(address, size, call->thread->device)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = address;
    call->record.address = address;
    return CUDA_SUCCESS;
}

static void unmap_page(mapped_page *p)
{
    physical *memory = physical_at(p->physical);
    GMD_ASSERT(memory->handle && memory->mapped, "what is unmapped was mapped");
    memory->mapped--;
    sim.devices[memory->properties.location.id].mapped_bytes -= GMD_SIM_PAGE_BYTES;
    physical_forget_if_unused(memory);
    *p = (mapped_page){0};
}

static void unmap_all(reservation *r)
{
    for (uint64_t i = 0; r->mapped_count; i++) {
        GMD_ASSERT(i < page_count(r->size), "what is mapped lies in the reservation");
        if (r->pages[i].physical) {
            unmap_page(&r->pages[i]);
            r->mapped_count--;
        }
    }
}

void virtual_release(allocation *a)
{
    reservation *r = &ranges.list[a->reservation];
    unmap_all(r);
    give_back(r->pages, r->data, r->size);
    sim.devices[r->device].reservation_count--;
    sim.devices[r->device].reservation_bytes -= r->size;
    r->size = 0;
    r->next_free = ranges.free;
    ranges.free = a->reservation;
    map_remove(a->address);
}

int virtual_free(sim_call *call, uint64_t address, uint64_t size)
{
    allocation *a = map_find(address);
    if (!a || !a->reservation || a->address != address || a->size != size) {
        return call_misuse_of(call, CUDA_ERROR_INVALID_VALUE, "not_reserved",
                              "what is freed is not exactly a reserved address range");
    }
    if (ranges.list[a->reservation].mapped_count) {
        return call_misuse_of(call, CUDA_ERROR_INVALID_VALUE, "still_mapped",
                              "an address range is freed while something is mapped in it");
    }
    virtual_release(a);
    return CUDA_SUCCESS;
}

/* --- mapping ----------------------------------------------------------------------------- */

/* The host addresses of a range show a physical memory, or nothing again. */
static bool show(const reservation *r, uint64_t address, const physical *memory)
{
    return mmap(r->data + (address - r->address), memory->size, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_FIXED, memory->file, 0) != MAP_FAILED;
}

static void hide(const reservation *r, uint64_t address, uint64_t size)
{
    if (r->data &&
        mmap(r->data + (address - r->address), size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
        abort(); /* the data of freed memory would stay in reach */
    }
}

int virtual_map(sim_call *call, uint64_t address, uint64_t size, uint64_t offset,
                CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    reservation *r = reservation_of(address, size);
    physical *memory = physical_find(handle);
    if (!memory) { /* a released one is still good while something of it is mapped */
        return physical_none(call);
    }
    if (flags || size == 0 || !is_whole_pages(address)) {
        return call_misuse_of(
            call, CUDA_ERROR_INVALID_VALUE, "bad_arguments",
            "unknown flags, nothing to map, or an address inside a page of 2 MiB");
    }
    if (offset != 0 || size != memory->size) {
        return call_misuse(call, CUDA_ERROR_NOT_SUPPORTED,
                           "part of a physical memory is mapped: the driver maps it whole only");
    }
    if (!r) {
        return call_misuse_of(call, CUDA_ERROR_INVALID_VALUE, "not_reserved",
                              "what is mapped is not within one reserved range");
    }
    mapped_page *first = page_at(r, address);
    uint64_t count = size / GMD_SIM_PAGE_BYTES;
    for (uint64_t i = 0; i < count; i++) {
        if (first[i].physical) {
            return call_misuse_of(call, CUDA_ERROR_INVALID_VALUE, "already_mapped",
                                  "memory is mapped where something is mapped already");
        }
    }
    if (r->data && !show(r, address, memory)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (uint64_t i = 0; i < count; i++) {
        first[i] = (mapped_page){.physical = physical_number(memory), .is_first = i == 0};
    }
    r->mapped_count += count;
    memory->mapped += (uint32_t)count;
    sim.devices[memory->properties.location.id].mapped_bytes += size;
    call->record.device = memory->properties.location.id;
    return CUDA_SUCCESS;
}

/* The range cuts no mapping in two, and from its first page to its last something is mapped. */
static bool is_of_whole_mappings(const reservation *r, uint64_t address, uint64_t size)
{
    const mapped_page *first = page_at(r, address);
    uint64_t count = size / GMD_SIM_PAGE_BYTES;
    if (first->physical && !first->is_first) {
        return false;
    }
    bool is_at_end = address + size == r->address + r->size;
    return is_at_end || !first[count].physical || first[count].is_first;
}

/* Mappings are taken down whole; what is not mapped in the range does no harm. Unlike cudaFree this
 * waits for no work. */
int virtual_unmap(sim_call *call, uint64_t address, uint64_t size)
{
    reservation *r = reservation_of(address, size);
    if (!r || !is_of_whole_mappings(r, address, size)) {
        return call_misuse(call, CUDA_ERROR_INVALID_VALUE,
                           "what is unmapped is not within one reserved range, or part of a "
                           "mapping only");
    }
    mapped_page *first = page_at(r, address);
    hide(r, address, size);
    for (uint64_t i = 0; i < size / GMD_SIM_PAGE_BYTES; i++) {
        if (first[i].physical) {
            call->record.device = physical_at(first[i].physical)->properties.location.id;
            unmap_page(&first[i]);
            r->mapped_count--;
        }
    }
    return CUDA_SUCCESS;
}

/* --- access ------------------------------------------------------------------------------ */

static uint32_t access_of(const mapped_page *p, int device)
{
    return p->access >> (2 * device) & 3;
}

static const char *wrong_access(const CUmemAccessDesc *access, size_t count)
{
    for (size_t i = 0; access && i < count; i++) {
        const CUmemAccessDesc *a = &access[i];
        if (a->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !device_exists(a->location.id)) {
            return "access is for devices that exist";
        }
        if (a->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
            a->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
            a->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
            return "access flags are none, read, or read and write";
        }
    }
    return access && count ? NULL : "no access is given";
}

int virtual_set_access(sim_call *call, uint64_t address, uint64_t size,
                       const CUmemAccessDesc *access, size_t count)
{
    const char *wrong = wrong_access(access, count);
    reservation *r = reservation_of(address, size);
    if (wrong || !r) {
        return call_misuse(call, CUDA_ERROR_INVALID_VALUE,
                           wrong ? wrong : "the range is not within one reserved range");
    }
    if (!is_of_whole_mappings(r, address, size)) {
        return call_misuse_of(call, CUDA_ERROR_INVALID_VALUE, "part_of_mapping",
                              "access is given to part of a mapping only");
    }
    mapped_page *first = page_at(r, address);
    uint64_t pages = size / GMD_SIM_PAGE_BYTES;
    for (uint64_t i = 0; i < pages; i++) {
        if (!first[i].physical) {
            return call_misuse_of(call, CUDA_ERROR_INVALID_VALUE, "not_mapped",
                                  "access is given to addresses where nothing is mapped");
        }
    }
    for (uint64_t i = 0; i < pages; i++) {
        for (size_t k = 0; k < count; k++) {
            unsigned shift = 2 * (unsigned)access[k].location.id;
            first[i].access = (first[i].access & ~(3u << shift)) | (uint32_t)access[k].flags
                                                                       << shift;
        }
    }
    return CUDA_SUCCESS;
}

static const mapped_page *find_mapped(uint64_t address)
{
    const allocation *a = map_find(address);
    const mapped_page *p =
        a && a->reservation ? page_at(&ranges.list[a->reservation], address) : NULL;
    return p && p->physical ? p : NULL;
}

int virtual_get_access(sim_call *call, unsigned long long *flags, const CUmemLocation *location,
                       uint64_t address)
{
    const mapped_page *p = find_mapped(address);
    if (!p || !flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !device_exists(location->id)) {
        return call_misuse(call, CUDA_ERROR_INVALID_VALUE,
                           "nothing is mapped there, or the question is incomplete");
    }
    *flags = access_of(p, location->id);
    return CUDA_SUCCESS;
}

int virtual_retain(sim_call *call, CUmemGenericAllocationHandle *handle, uint64_t address)
{
    const mapped_page *p = find_mapped(address);
    if (!p || !handle) {
        return call_misuse(call, CUDA_ERROR_INVALID_VALUE,
                           "nothing is mapped there, or no place for the handle");
    }
    physical_at(p->physical)->references++;
    *handle = physical_at(p->physical)->handle;
    return CUDA_SUCCESS;
}

/* --- what others ask --------------------------------------------------------------------- */

bool virtual_is_usable(const allocation *a, uint64_t address, uint64_t size, int device,
                       uint64_t *bad)
{
    const reservation *r = &ranges.list[a->reservation];
    uint64_t end = size ? address + size : address + 1;
    for (uint64_t at = address; at < end; at = (at / GMD_SIM_PAGE_BYTES + 1) * GMD_SIM_PAGE_BYTES) {
        if (access_of(page_at(r, at), device) != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
            *bad = at;
            return false;
        }
    }
    return true;
}

bool virtual_is_memory_of(const allocation *a, uint64_t address, uint64_t size, int device,
                          uint64_t *bad)
{
    const reservation *r = &ranges.list[a->reservation];
    uint64_t end = size ? address + size : address + 1;
    for (uint64_t at = address; at < end; at = (at / GMD_SIM_PAGE_BYTES + 1) * GMD_SIM_PAGE_BYTES) {
        const mapped_page *p = page_at(r, at);
        if (!p->physical || physical_at(p->physical)->properties.location.id != device) {
            *bad = at;
            return false;
        }
    }
    return true;
}

bool virtual_is_mapped(const allocation *a, uint64_t address, uint64_t *start)
{
    const reservation *r = &ranges.list[a->reservation];
    *start = r->address;
    return page_at(r, address)->physical != 0;
}

/* A handle is mapped whole. */
bool virtual_place(const allocation *a, uint64_t address, uint64_t size, uint64_t *at,
                   uint64_t *length)
{
    const reservation *r = &ranges.list[a->reservation];
    const mapped_page *first = page_at(r, address);
    if (!first->physical) {
        return false;
    }
    while (!first->is_first) {
        first--;
    }
    const physical *p = physical_at(first->physical);
    uint64_t begin = r->address + (uint64_t)(first - r->pages) * GMD_SIM_PAGE_BYTES;
    uint64_t offset = address - begin, left = p->size - offset;
    *at = p->place + offset;
    *length = gmd_min(size, left);
    return true;
}

/* --- validity ---------------------------------------------------------------------------- */

/* A handle is mapped whole: its first page says so, and as many follow. */
static const char *mapping_violation(const reservation *r, uint64_t first, uint64_t *count)
{
    const mapped_page *p = &r->pages[first];
    const physical *memory = physical_at(p->physical);
    *count = memory->size / GMD_SIM_PAGE_BYTES;
    if (!memory->handle || !*count || *count > page_count(r->size) - first) {
        return "what is mapped is a physical memory, and lies in the reservation";
    }
    for (uint64_t i = 0; i < *count; i++) {
        if (p[i].physical != p->physical || p[i].is_first != (i == 0)) {
            return "a physical memory is mapped whole";
        }
    }
    physical_at(p->physical)->pages_seen += (uint32_t)*count;
    return NULL;
}

/* What lies behind the last page that is counted is not looked at: a reservation may be as large as
 * the device, and empty. */
static const char *pages_violation(const reservation *r)
{
    uint64_t seen = 0;
    for (uint64_t i = 0, count; i < page_count(r->size) && seen < r->mapped_count; i += count) {
        count = 1;
        const char *violation = r->pages[i].physical ? mapping_violation(r, i, &count) : NULL;
        if (violation) {
            return violation;
        }
        seen += r->pages[i].physical ? count : 0;
    }
    return seen == r->mapped_count ? NULL : "a reservation counts the pages that are mapped";
}

static const char *reservation_violation(uint32_t slot)
{
    const reservation *r = &ranges.list[slot];
    const allocation *a = map_find(r->address);
    return a && a->address == r->address && a->span == r->size && a->reservation == slot
               ? pages_violation(r)
               : "a reservation has its range in the map";
}

const char *virtual_violation(uint64_t bytes[GMD_SIM_DEVICE_MAX])
{
    uint64_t counts[GMD_SIM_DEVICE_MAX] = {0}, sizes[GMD_SIM_DEVICE_MAX] = {0};
    physical_begin_check();
    for (uint32_t slot = 1; slot < ranges.count; slot++) {
        const reservation *r = &ranges.list[slot];
        const char *violation = r->size ? reservation_violation(slot) : NULL;
        if (violation) {
            return violation;
        }
        counts[r->device] += r->size != 0;
        sizes[r->device] += r->size;
    }
    for (uint32_t d = 0; d < sim.config.device_count; d++) {
        if (sim.devices[d].reservation_count != counts[d] ||
            sim.devices[d].reservation_bytes != sizes[d]) {
            return "a device counts its reservations and their bytes";
        }
    }
    return physical_violation(bytes);
}

void virtual_reset(void)
{
    for (uint32_t i = 1; i < ranges.count; i++) {
        if (ranges.list[i].size) {
            reservation *r = &ranges.list[i];
            unmap_all(r);
            give_back(r->pages, r->data, r->size);
        }
    }
    ranges.count = 1;
    ranges.free = 0;
    physical_reset();
}
