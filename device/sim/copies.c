/* Memsets and copies: checked and queued here, and carried out when their entry completes.
 *
 * Page-locked host memory is read and written when the copy completes. Pageable host memory is read
 * when the copy is queued, and a copy into it is complete when the call returns: what the real
 * runtime does with its staging buffers. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

/* Rough figures of a current GPU, so that work on the virtual clock is of a plausible size. */
enum { START_NS = 2000, DEVICE_BYTES_PER_NS = 2048, LINK_BYTES_PER_NS = 32 };

typedef enum side { SIDE_NONE, SIDE_DEVICE, SIDE_PINNED, SIDE_PAGEABLE } side;

static side side_of(const void *pointer, uint64_t size)
{
    uint64_t address = (uintptr_t)pointer;
    if (!pointer || size > UINT64_MAX - address) {
        return SIDE_NONE;
    }
    if (map_find(address)) {
        return memory_find_range(address, size) ? SIDE_DEVICE : SIDE_NONE;
    }
    if (memory_is_pinned(pointer, 1, NULL)) {
        return memory_is_pinned(pointer, size, NULL) ? SIDE_PINNED : SIDE_NONE;
    }
    return placement_owns(address) ? SIDE_NONE : SIDE_PAGEABLE;
}

/* --- when an entry completes ------------------------------------------------------------- */

/* The host memory of one side of a copy; NULL: the device is not backed, or the memory has been
 * freed meanwhile, which only a lenient cudaFree allows. */
static unsigned char *bytes_at(uint64_t address, uint64_t size)
{
    allocation *a = map_find(address);
    if (!a) {
        return placement_owns(address) ? NULL : (unsigned char *)(uintptr_t)address;
    }
    a = memory_find_range(address, size);
    return a && a->data ? a->data + (address - a->address) : NULL;
}

static bool is_gone(uint64_t address, uint64_t size, int device)
{
    if (!placement_owns(address)) {
        return false; /* the host's */
    }
    uint64_t bad;
    const allocation *a = memory_find_range(address, size);
    return !a || (a->reservation && !virtual_is_usable(a, address, size, device, &bad));
}

void copy_complete(entry *e, int device)
{
    bool reads_memory = e->kind == ENTRY_COPY && !e->move.staged;
    if (is_gone(e->move.to, e->move.size, device) ||
        (reads_memory && is_gone(e->move.from, e->move.size, device))) {
        device_break(device);
        copy_drop(e);
        return;
    }
    unsigned char *to = bytes_at(e->move.to, e->move.size);
    if (to && e->kind == ENTRY_FILL) {
        memset(to, e->value, e->move.size);
    } else if (to) {
        const unsigned char *from = e->move.staged;
        from = from ? from : bytes_at(e->move.from, e->move.size);
        if (from) {
            memmove(to, from, e->move.size);
        }
    }
    copy_drop(e);
}

void copy_drop(entry *e)
{
    if (e->kind == ENTRY_COPY) {
        free(e->move.staged);
        e->move.staged = NULL;
    }
}

/* --- memset ------------------------------------------------------------------------------ */

static int fill(sim_call *call, void *to, int value, size_t size, cudaStream_t handle)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (size == 0) {
        return cudaSuccess;
    }
    side where = side_of(to, size);
    if (where != SIDE_DEVICE && where != SIDE_PINNED) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "a memset outside of what is allocated on the device");
    }
    entry e = {.kind = ENTRY_FILL,
               .value = value,
               .duration_ns = START_NS + size / DEVICE_BYTES_PER_NS,
               .move = {.to = (uintptr_t)to, .size = size}};
    return stream_order_default(s) && stream_push(s, e) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t gmd_sim_cudaMemset(void *to, int value, size_t size)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaMemset)) {
        call.record.result = fill(&call, to, value, size, NULL);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaMemsetAsync)) {
        call.record.result = fill(&call, to, value, size, handle);
    }
    return (cudaError_t)call_leave(&call);
}

/* --- memcpy ------------------------------------------------------------------------------ */

/* A side may be what the kind of copy says it is: page-locked memory is the host's and, being
 * mapped, the device's. */
static bool is_as_said(side s, bool said_device)
{
    return s == SIDE_PINNED || (s == SIDE_DEVICE) == said_device;
}

static bool sides_match(enum cudaMemcpyKind kind, side to, side from)
{
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    return to != SIDE_NONE && from != SIDE_NONE &&
           (kind == cudaMemcpyDefault ||
            (is_as_said(to, to_device) && is_as_said(from, from_device)));
}

/* Pageable source memory is the caller's again when the call returns. NULL also where no data
 * moves. */
static bool stage(entry *e, side to, side from)
{
    if (from != SIDE_PAGEABLE || (to == SIDE_DEVICE && !sim.config.backed)) {
        return true;
    }
    e->move.staged = malloc(e->move.size);
    if (e->move.staged) {
        memcpy(e->move.staged, (const void *)(uintptr_t)e->move.from, e->move.size);
    }
    return e->move.staged != NULL;
}

static bool queue_copy(stream *s, entry *e, side to, side from)
{
    if (!stream_order_default(s) || !stage(e, to, from)) {
        return false;
    }
    if (!stream_push(s, *e)) {
        free(e->move.staged);
        return false;
    }
    return true;
}

static int copy(sim_call *call, void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                cudaStream_t handle, bool is_async)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if ((unsigned)kind > cudaMemcpyDefault) {
        return call_misuse(call, cudaErrorInvalidMemcpyDirection, "an unknown kind of copy");
    }
    if (size == 0) {
        return cudaSuccess;
    }
    side target = side_of(to, size), source = side_of(from, size);
    if (!sides_match(kind, target, source)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "a copy whose ranges are not allocated or not of the kind it names");
    }
    bool is_on_device = target == SIDE_DEVICE && source == SIDE_DEVICE;
    uint64_t speed = is_on_device ? DEVICE_BYTES_PER_NS : LINK_BYTES_PER_NS;
    entry e = {.kind = ENTRY_COPY,
               .duration_ns = START_NS + size / speed,
               .move = {.to = (uintptr_t)to, .from = (uintptr_t)from, .size = size}};
    if (!queue_copy(s, &e, target, source)) {
        return cudaErrorMemoryAllocation;
    }
    if (target == SIDE_PAGEABLE || (!is_async && !is_on_device)) {
        stream_force(s, s->tail);
        host_learn(stream_point(s));
    }
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                        size_t size, cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaMemcpyPeerAsync)) {
        call.record.result =
            device_exists(to_device) && device_exists(from_device)
                ? copy(&call, to, from, size, cudaMemcpyDeviceToDevice, handle, true)
                : call_misuse(&call, cudaErrorInvalidDevice, "there is no device of this number");
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaMemcpy)) {
        call.record.result = copy(&call, to, from, size, kind, NULL, false);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaMemcpyAsync(void *to, const void *from, size_t size,
                                    enum cudaMemcpyKind kind, cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaMemcpyAsync)) {
        call.record.result = copy(&call, to, from, size, kind, handle, true);
    }
    return (cudaError_t)call_leave(&call);
}
