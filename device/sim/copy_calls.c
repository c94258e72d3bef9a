/* Memsets and copies: checked and queued here, and carried out (copies.c) when their entry
 * completes.
 *
 * Page-locked host memory is read and written when the copy completes. Pageable host memory is read
 * when the copy is queued, and a copy into it is complete when the call returns: what the real
 * runtime does with its staging buffers. In a capture nothing is read or waited for: the graph does
 * so when it is launched. */
#include "calls.h"
#include "capture.h"
#include "copies.h"
#include "happens_before.h"
#include "host_memory.h"
#include "memory.h"
#include "placement.h"
#include "push.h"
#include "queue.h"
#include "streams.h"
#include "waiting.h"

#include <stdlib.h>
#include <string.h>

/* Rough figures of a current GPU, so that work on the virtual clock is of a plausible size. */
enum { START_NS = 2000, DEVICE_BYTES_PER_NS = 2048, LINK_BYTES_PER_NS = 32 };

typedef enum side { SIDE_NONE, SIDE_DEVICE, SIDE_PINNED, SIDE_PAGEABLE } side;

static side side_of(uint64_t address, uint64_t size)
{
    const void *pointer = (const void *)(uintptr_t)address;
    if (!pointer || size > UINT64_MAX - address) {
        return SIDE_NONE;
    }
    if (map_find(address)) {
        return map_find_range(address, size) ? SIDE_DEVICE : SIDE_NONE;
    }
    if (host_find(pointer, 1)) {
        return host_find(pointer, size) ? SIDE_PINNED : SIDE_NONE;
    }
    return placement_owns(address) ? SIDE_NONE : SIDE_PAGEABLE;
}

/* --- memset ------------------------------------------------------------------------------ */

static int queue_work(stream *s, entry e)
{
    bool is_queued = (s->capture || stream_order_default(s)) && stream_push(s, e);
    if (!is_queued) {
        entry_drop(&e);
    }
    return is_queued ? cudaSuccess : cudaErrorMemoryAllocation;
}

static int fill(sim_call *call, entry e, cudaStream_t handle)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    int refused = capture_check_work(call, s);
    if (refused || e.move.width == 0 || e.move.height == 0) {
        return refused;
    }
    side where =
        e.move.to_pitch < e.move.width && e.move.height > 1
            ? SIDE_NONE
            : side_of(e.move.to, copy_extent(e.move.width, e.move.height, e.move.to_pitch));
    if ((where != SIDE_DEVICE && where != SIDE_PINNED) || e.move.to % e.count != 0) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "a memset outside of what is allocated on the device, or misaligned");
    }
    e.kind = ENTRY_FILL;
    e.duration_ns = START_NS + e.move.width * e.move.height / DEVICE_BYTES_PER_NS;
    return queue_work(s, e);
}

/* A driver function that takes no stream, and its form for per-thread default streams: `...` is
 * what it answers on the stream `on`. */
#define SIM_DRIVER_SYNCHRONOUS(name, parameters, ...)                                              \
    SIM_DRIVER_ON(name, name, NULL, parameters, __VA_ARGS__)                                       \
    SIM_DRIVER_ON(name, name##_ptds, cudaStreamPerThread, parameters, __VA_ARGS__)
#define SIM_DRIVER_ON(name, symbol, default_stream, parameters, ...)                               \
    CUresult gmd_sim_##symbol parameters                                                           \
    {                                                                                              \
        sim_call call;                                                                             \
        if (call_enter(&call, CALL_##name)) {                                                      \
            cudaStream_t on = default_stream;                                                      \
            call.record.result =                                                                   \
                call.thread->has_context ? (int)(__VA_ARGS__) : (int)CUDA_ERROR_INVALID_CONTEXT;   \
        }                                                                                          \
        return (CUresult)call_leave(&call);                                                        \
    }

static entry bytes(uint64_t to, int value, size_t width, size_t height, size_t pitch)
{
    return (entry){.value = (unsigned char)value,
                   .count = 1,
                   .move = {.to = to, .width = width, .height = height, .to_pitch = pitch}};
}

static entry words(uint64_t to, uint32_t value, size_t count)
{
    size_t size = count > SIZE_MAX / 4 ? SIZE_MAX : count * 4;
    return (entry){.value = value,
                   .count = 4,
                   .move = {.to = to, .width = size, .height = 1, .to_pitch = size}};
}

cudaError_t gmd_sim_memset_on(cudaStream_t on, void *to, int value, size_t size)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaMemset)) {
        call.record.result = fill(&call, bytes((uintptr_t)to, value, size, 1, size), on);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaMemset(void *to, int value, size_t size)
{
    return gmd_sim_memset_on(NULL, to, value, size);
}

SIM_CALL(cudaMemsetAsync, (void *to, int value, size_t size, cudaStream_t on),
         fill(&call, bytes((uintptr_t)to, value, size, 1, size), on))
SIM_CALL(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height),
         fill(&call, bytes((uintptr_t)to, value, width, height, pitch), NULL))
SIM_CALL(cudaMemset2DAsync,
         (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t on),
         fill(&call, bytes((uintptr_t)to, value, width, height, pitch), on))
SIM_DRIVER_SYNCHRONOUS(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t count),
                       fill(&call, bytes(to, value, count, 1, count), on))
SIM_DRIVER_CALL(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t count, CUstream on),
                fill(&call, bytes(to, value, count, 1, count), on))
SIM_DRIVER_SYNCHRONOUS(cuMemsetD32_v2, (CUdeviceptr to, unsigned value, size_t count),
                       fill(&call, words(to, value, count), on))
SIM_DRIVER_CALL(cuMemsetD32Async, (CUdeviceptr to, unsigned value, size_t count, CUstream on),
                fill(&call, words(to, value, count), on))

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
    uint64_t size = copy_extent(e->move.width, e->move.height, e->move.from_pitch);
    e->move.staged = malloc(size);
    if (e->move.staged) {
        memcpy(e->move.staged, (const void *)(uintptr_t)e->move.from, size);
    }
    return e->move.staged != NULL;
}

/* One copy as it was asked for. */
typedef struct request {
    uint64_t to, from;
    size_t to_pitch, from_pitch, width, height;
    enum cudaMemcpyKind kind;
    bool is_async;
} request;

static int copy_checked(sim_call *call, const request *r, stream *s)
{
    side target = side_of(r->to, copy_extent(r->width, r->height, r->to_pitch));
    side source = side_of(r->from, copy_extent(r->width, r->height, r->from_pitch));
    if (!sides_match(r->kind, target, source)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "a copy whose ranges are not allocated or not of the kind it names");
    }
    bool is_on_device = target == SIDE_DEVICE && source == SIDE_DEVICE;
    uint64_t speed = is_on_device ? DEVICE_BYTES_PER_NS : LINK_BYTES_PER_NS;
    entry e = {.kind = ENTRY_COPY,
               .duration_ns = START_NS + r->width * r->height / speed,
               .move = {.to = r->to,
                        .from = r->from,
                        .width = r->width,
                        .height = r->height,
                        .to_pitch = r->to_pitch,
                        .from_pitch = r->from_pitch}};
    bool is_captured = s->capture != NULL;
    if (!is_captured && !stage(&e, target, source)) {
        return cudaErrorMemoryAllocation;
    }
    int result = queue_work(s, e);
    if (!result && !is_captured && (target == SIDE_PAGEABLE || (!r->is_async && !is_on_device))) {
        host_wait(stream_point(s));
    }
    return result;
}

static int copy(sim_call *call, request r, cudaStream_t handle)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if ((unsigned)r.kind > cudaMemcpyDefault) {
        return call_misuse(call, cudaErrorInvalidMemcpyDirection, "an unknown kind of copy");
    }
    int refused = capture_check_work(call, s);
    if (refused || r.width == 0 || r.height == 0) {
        return refused;
    }
    if (r.to_pitch < r.width || r.from_pitch < r.width) {
        return call_misuse(call, cudaErrorInvalidPitchValue, "a pitch is less than the width");
    }
    return copy_checked(call, &r, s);
}

static request flat(const void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                    bool is_async)
{
    return (request){.to = (uintptr_t)to,
                     .from = (uintptr_t)from,
                     .to_pitch = size,
                     .from_pitch = size,
                     .width = size,
                     .height = 1,
                     .kind = kind,
                     .is_async = is_async};
}

static request rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                    size_t height, enum cudaMemcpyKind kind, bool is_async)
{
    request r = flat(to, from, width, kind, is_async);
    r.to_pitch = to_pitch;
    r.from_pitch = from_pitch;
    r.height = height;
    return r;
}

/* The driver's addresses as pointers. */
static void *at(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

cudaError_t gmd_sim_memcpy_on(cudaStream_t on, void *to, const void *from, size_t size,
                              enum cudaMemcpyKind kind)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaMemcpy)) {
        call.record.result = copy(&call, flat(to, from, size, kind, false), on);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    return gmd_sim_memcpy_on(NULL, to, from, size, kind);
}

SIM_CALL(cudaMemcpyAsync,
         (void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t on),
         copy(&call, flat(to, from, size, kind, true), on))
SIM_CALL(cudaMemcpy2D,
         (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
          size_t height, enum cudaMemcpyKind kind),
         copy(&call, rows(to, to_pitch, from, from_pitch, width, height, kind, false), NULL))
SIM_CALL(cudaMemcpy2DAsync,
         (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
          size_t height, enum cudaMemcpyKind kind, cudaStream_t on),
         copy(&call, rows(to, to_pitch, from, from_pitch, width, height, kind, true), on))

SIM_DRIVER_SYNCHRONOUS(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size),
                       copy(&call, flat(at(to), at(from), size, cudaMemcpyDefault, false), on))
SIM_DRIVER_CALL(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream on),
                copy(&call, flat(at(to), at(from), size, cudaMemcpyDefault, true), on))
SIM_DRIVER_SYNCHRONOUS(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size),
                       copy(&call, flat(at(to), from, size, cudaMemcpyHostToDevice, false), on))
SIM_DRIVER_SYNCHRONOUS(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size),
                       copy(&call, flat(to, at(from), size, cudaMemcpyDeviceToHost, false), on))
SIM_DRIVER_SYNCHRONOUS(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t size),
                       copy(&call, flat(at(to), at(from), size, cudaMemcpyDeviceToDevice, false),
                            on))
SIM_DRIVER_CALL(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t size, CUstream on),
                copy(&call, flat(at(to), from, size, cudaMemcpyHostToDevice, true), on))
SIM_DRIVER_CALL(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t size, CUstream on),
                copy(&call, flat(to, at(from), size, cudaMemcpyDeviceToHost, true), on))
SIM_DRIVER_CALL(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream on),
                copy(&call, flat(at(to), at(from), size, cudaMemcpyDeviceToDevice, true), on))

/* --- boxes ------------------------------------------------------------------------------- */

static uintptr_t corner(const struct cudaPitchedPtr *box, const struct cudaPos *from)
{
    return (uintptr_t)box->ptr + (from->z * box->ysize + from->y) * box->pitch + from->x;
}

/* A box is queued slice by slice, or as one copy of rows where the slices follow each other. */
static int copy_box(sim_call *call, const struct cudaMemcpy3DParms *box, cudaStream_t handle,
                    bool is_async)
{
    if (!box || box->srcArray || box->dstArray || !box->srcPtr.ptr || !box->dstPtr.ptr) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "a copy without parameters or a side, or of an array, which the "
                           "simulated device has not");
    }
    struct cudaExtent size = box->extent;
    const struct cudaPitchedPtr *to = &box->dstPtr, *from = &box->srcPtr;
    bool is_slab = to->ysize == size.height && from->ysize == size.height;
    size_t height = is_slab ? size.height * size.depth : size.height;
    size_t slices = is_slab ? 1 : size.depth;
    int result = cudaSuccess;
    for (size_t i = 0; !result && i < slices; i++) {
        uintptr_t target = corner(to, &box->dstPos) + i * to->ysize * to->pitch;
        uintptr_t source = corner(from, &box->srcPos) + i * from->ysize * from->pitch;
        result = copy(call,
                      rows((void *)target, to->pitch, (const void *)source, from->pitch, size.width,
                           height, box->kind, is_async),
                      handle);
    }
    return result;
}

SIM_CALL(cudaMemcpy3D, (const struct cudaMemcpy3DParms *box), copy_box(&call, box, NULL, false))
SIM_CALL(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *box, cudaStream_t on),
         copy_box(&call, box, on, true))

/* --- between devices --------------------------------------------------------------------- */

static int copy_peer(sim_call *call, const void *to, int to_device, const void *from,
                     int from_device, size_t size, cudaStream_t handle)
{
    if (!device_exists(to_device) || !device_exists(from_device)) {
        return call_misuse(call, cudaErrorInvalidDevice, "there is no device of this number");
    }
    return copy(call, flat(to, from, size, cudaMemcpyDeviceToDevice, true), handle);
}

/* Without a stream, it is serialised with all work of both devices, before and after. */
static int copy_peer_alone(sim_call *call, const void *to, int to_device, const void *from,
                           int from_device, size_t size)
{
    bool is_serialised =
        !capture_is_any() && device_exists(to_device) && device_exists(from_device);
    if (is_serialised) {
        host_wait_device(to_device);
        host_wait_device(from_device);
    }
    int result = copy_peer(call, to, to_device, from, from_device, size, NULL);
    if (is_serialised) {
        host_wait_device(call->thread->device);
    }
    return result;
}

SIM_CALL(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t size),
         copy_peer_alone(&call, to, to_device, from, from_device, size))
SIM_CALL(cudaMemcpyPeerAsync,
         (void *to, int to_device, const void *from, int from_device, size_t size, cudaStream_t on),
         copy_peer(&call, to, to_device, from, from_device, size, on))

/* --- values in memory -------------------------------------------------------------------- */

static int wait_value(sim_call *call, cudaStream_t handle, CUdeviceptr address, uint32_t value,
                      unsigned flags)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    side where = side_of(address, sizeof value);
    if (flags > CU_STREAM_WAIT_VALUE_NOR || address % sizeof value != 0 ||
        (where != SIDE_DEVICE && where != SIDE_PINNED)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "a wait for a value at no allocated, aligned address, or unknown flags");
    }
    int refused = capture_check_work(call, s);
    entry e = {.kind = ENTRY_WAIT_VALUE, .value = value, .count = flags, .move = {.to = address}};
    return refused ? refused : queue_work(s, e);
}

SIM_DRIVER_CALL(cuStreamWaitValue32_v2,
                (CUstream on, CUdeviceptr address, unsigned value, unsigned flags),
                wait_value(&call, on, address, value, flags))
SIM_DRIVER_CALL(cuStreamWriteValue32_v2,
                (CUstream on, CUdeviceptr address, unsigned value, unsigned flags),
                flags ? call_misuse(&call, CUDA_ERROR_INVALID_VALUE, "unknown flags")
                      : fill(&call, words(address, value, 1), on))
