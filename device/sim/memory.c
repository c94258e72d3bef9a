/* Device memory: allocation, accounting, and finding. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "marks.h"
#include "pages.h"
#include "state.h"

#include "gmd_assert.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* --- the host memory behind an allocation ------------------------------------------------ */

enum { MAP_THRESHOLD = 64 << 10 };

static unsigned char *backing_new(uint64_t size)
{
    if (size < MAP_THRESHOLD) {
        return calloc(1, size);
    }
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static void backing_delete(unsigned char *data, uint64_t size)
{
    if (data && size >= MAP_THRESHOLD) {
        munmap(data, size);
    } else {
        free(data);
    }
}

/* --- device memory ----------------------------------------------------------------------- */

allocation *memory_find_range(uint64_t address, uint64_t size)
{
    allocation *a = map_find(address);
    uint64_t offset = a ? address - a->address : 0;
    return a && offset <= a->size && size <= a->size - offset ? a : NULL;
}

allocation *memory_find_run(uint64_t address, uint64_t size)
{
    allocation *a = map_find(address);
    if (a && a->pool_block) {
        return pool_has(a->pool_block, address, size) ? a : NULL;
    }
    return memory_find_range(address, size);
}

bool memory_allocate(int device, uint64_t size, uint32_t pool_block, uint64_t *address)
{
    place where;
    if (!placement_choose(device, size, &where)) {
        return false;
    }
    unsigned char *data = sim.config.backed ? backing_new(size) : NULL;
    allocation *a = sim.config.backed && !data ? NULL : map_insert(where.address, where.span);
    if (!a) {
        backing_delete(data, size);
        return false;
    }
    a->size = size;
    a->device = device;
    a->data = data;
    a->pool_block = pool_block;
    a->buffer_id = ++sim.buffers;
    sim_device *d = &sim.devices[device];
    d->physical_bytes += pages_take(where.address, where.span, device);
    d->allocated_bytes += size;
    d->allocation_count++;
    *address = where.address;
    return true;
}

static void release(allocation *a)
{
    sim_device *d = &sim.devices[a->device];
    GMD_ASSERT(d->allocation_count && d->allocated_bytes >= a->size, "what goes was counted");
    d->physical_bytes -= pages_release(a->address, a->span);
    d->allocated_bytes -= a->size;
    d->allocation_count--;
    backing_delete(a->data, a->size);
    marks_forget(a->address, a->span);
    map_remove(a->address);
}

void memory_release_at(uint64_t address)
{
    allocation *a = map_find(address);
    GMD_ASSERT(a && a->address == address && !a->reservation, "an allocation begins there");
    release(a);
}

void memory_release_device(int device)
{
    pools_reset_device(device);
    for (uint64_t from = 0;;) {
        allocation *a = map_at_or_above(from);
        if (a->device < 0) {
            return; /* the end marker */
        }
        from = a->address + a->span;
        if (a->device == device && a->reservation) {
            virtual_release(a);
        } else if (a->device == device) {
            release(a);
        }
    }
}

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
    release(a);
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

/* The map is emptied at once afterwards, so nothing is removed from it one by one. */
void memory_reset(void)
{
    for (allocation *a = map_at_or_above(0); a->device >= 0; a = map_at_or_above(a->address + 1)) {
        bool is_of_pool = a->pool_block != 0;
        uint64_t chunk = is_of_pool ? pool_chunk_span(a->pool_block) : 0;
        if (!a->reservation && (!is_of_pool || chunk)) {
            pages_release(a->address, is_of_pool ? chunk : a->span);
            backing_delete(a->data, is_of_pool ? chunk : a->size);
        }
    }
    virtual_reset();
    host_reset();
}

/* --- control ----------------------------------------------------------------------------- */

static gmd_sim_range range_of(const allocation *a)
{
    return (gmd_sim_range){.address = a->address, .size = a->size, .device = a->device};
}

int gmd_sim_find(uint64_t address, gmd_sim_range *range)
{
    sim_lock();
    sim_start();
    const allocation *a = memory_find_range(address, 1);
    if (a) {
        *range = range_of(a);
    }
    sim_unlock();
    return a ? 0 : -1;
}

bool memory_is_usable(uint64_t address, uint64_t size, int device, uint64_t *bad)
{
    const allocation *a = memory_find_range(address, size);
    if (a && a->reservation) {
        return virtual_is_usable(a, address, size, device, bad);
    }
    const allocation *first = a ? a : memory_find_range(address, 1);
    *bad = first && first->device == device && !first->reservation ? first->address + first->size
                                                                   : address;
    return a && a->device == device;
}

bool memory_is_there(uint64_t address, uint64_t size, int device)
{
    uint64_t bad;
    const allocation *a = memory_find_run(address, size);
    return a && a->pool_block ? a->device == device : memory_is_usable(address, size, device, &bad);
}

bool gmd_sim_is_backed(uint64_t address, uint64_t size, int device, uint64_t *bad)
{
    uint64_t somewhere;
    bad = bad ? bad : &somewhere;
    sim_lock();
    sim_start();
    bool is_backed = memory_is_usable(address, size, device, bad);
    const allocation *a = is_backed ? memory_find_range(address, size) : NULL;
    if (a && a->reservation) { /* access may also be to another device's memory */
        is_backed = virtual_is_memory_of(a, address, size, device, bad);
    }
    sim_unlock();
    return is_backed;
}

int gmd_sim_budget(int device, uint64_t bytes)
{
    sim_lock();
    sim_start();
    bool exists = device_exists(device);
    if (exists) {
        sim.devices[device].budget_bytes = bytes;
    }
    sim_unlock();
    return exists ? 0 : -1;
}

void gmd_sim_each_allocation(int device, void (*visit)(void *context, const gmd_sim_range *range),
                             void *context)
{
    uint64_t from = 0;
    for (bool more = true; more;) {
        sim_lock(); /* not while visiting: the visitor may use the control API */
        sim_start();
        const allocation *a = map_at_or_above(from);
        more = a->device >= 0;
        bool is_memory = !a->reservation;
        gmd_sim_range range = range_of(a);
        from = a->address + 1;
        sim_unlock();
        if (more && is_memory && range.device == device) {
            visit(context, &range);
        }
    }
}

/* The host memory behind a device range, NULL when it is not one live, backed range. */
static unsigned char *backed_range(uint64_t address, uint64_t size)
{
    uint64_t bad;
    allocation *a = memory_find_range(address, size);
    bool is_there =
        a && a->data && (!a->reservation || virtual_is_usable(a, address, size, a->device, &bad));
    return is_there ? a->data + (address - a->address) : NULL;
}

int gmd_sim_peek(uint64_t address, void *to, size_t size)
{
    sim_lock();
    sim_start();
    const unsigned char *data = backed_range(address, size);
    if (data) {
        memcpy(to, data, size);
    }
    sim_unlock();
    return data ? 0 : -1;
}

int gmd_sim_poke(uint64_t address, const void *from, size_t size)
{
    sim_lock();
    sim_start();
    unsigned char *data = backed_range(address, size);
    if (data) {
        memcpy(data, from, size);
    }
    sim_unlock();
    return data ? 0 : -1;
}
