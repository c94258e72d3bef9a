/* Events. A record stores the stream and its tail; the event is complete when the stream's head has
 * got there. Only an event that keeps time costs a queue entry, and only on a busy stream. */
#include "queue.h"

#include <stdlib.h>

typedef struct event {
    cudaEvent_t handle; /* NULL: free */
    int device;
    unsigned flags;
    point at;                /* on nothing: never recorded */
    uint64_t end_ns;         /* when it completed; meaningful once it has */
    uint64_t capture_id;     /* 0: not recorded in a capture */
    uint32_t *capture_after; /* the nodes that it stands for there, owned */
    uint32_t capture_count;
    uint32_t next_free;
} event;

static struct {
    event *slots; /* [0] is not used */
    uint32_t count, capacity;
    uint32_t free_list;
    uint64_t creations; /* of the process: 18 bits of it tell the lives of a slot apart */
} events;

enum { SLOT_BITS = 20, LIFE_BITS = HANDLE_SERIAL_BITS - SLOT_BITS, EVENT_FLAGS = 0x7 };

static bool grow(void)
{
    uint32_t capacity = events.capacity ? events.capacity * 2 : 64;
    if (events.count >= 1u << SLOT_BITS) {
        return false;
    }
    event *slots = realloc(events.slots, capacity * sizeof *slots);
    if (!slots) {
        return false;
    }
    events.slots = slots;
    events.capacity = capacity;
    return true;
}

static event *event_find(cudaEvent_t handle)
{
    uint64_t slot = handle_serial((uintptr_t)handle, HANDLE_EVENT) & ((1u << SLOT_BITS) - 1);
    return slot && slot < events.count && events.slots[slot].handle == handle ? &events.slots[slot]
                                                                              : NULL;
}

static event *event_of(sim_call *call, cudaEvent_t handle)
{
    event *e = event_find(handle);
    if (!e) {
        call_misuse_of(call, 0, "event_gone",
                       "the event was never created, or is destroyed or from before a reset");
    }
    return e;
}

static bool is_complete(const event *e)
{
    return !e->at.on || e->at.on->head >= e->at.ticket;
}

/* What an event has answered or been waited for, the host knows. */
static bool learn_if_complete(const event *e)
{
    bool is_over = is_complete(e);
    if (is_over) {
        host_learn(e->at);
    }
    return is_over;
}

static void forget(event *e)
{
    point_store(&e->at, (point){.on = NULL});
    free(e->capture_after);
    e->capture_after = NULL;
    e->capture_id = 0;
    e->capture_count = 0;
}

static bool keeps_time(const event *e)
{
    return !(e->flags & cudaEventDisableTiming);
}

void event_recorded(cudaEvent_t handle, const stream *s, uint64_t ticket, uint64_t end_ns)
{
    event *e = event_find(handle);
    if (e && e->at.on == s && e->at.ticket == ticket) {
        e->end_ns = end_ns;
    }
}

void events_reset(void)
{
    for (uint32_t slot = 1; slot < events.count; slot++) {
        forget(&events.slots[slot]);
    }
    events.count = 1;
    events.free_list = 0;
}

static void release(uint32_t slot)
{
    event *e = &events.slots[slot];
    sim.devices[e->device].event_count--;
    forget(e);
    e->handle = NULL;
    e->next_free = events.free_list;
    events.free_list = slot;
}

void events_reset_device(int device)
{
    for (uint32_t slot = 1; slot < events.count; slot++) {
        if (events.slots[slot].handle && events.slots[slot].device == device) {
            release(slot);
        }
    }
}

/* --- the API ----------------------------------------------------------------------------- */

static int create(sim_call *call, cudaEvent_t *out, unsigned flags)
{
    if (!out) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the new event");
    }
    if ((flags & ~(unsigned)EVENT_FLAGS) ||
        ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming))) {
        return call_misuse(call, cudaErrorInvalidValue, "unknown or contradictory event flags");
    }
    uint32_t slot = events.free_list;
    if (slot) {
        events.free_list = events.slots[slot].next_free;
    } else {
        if (events.count >= events.capacity && !grow()) {
            return cudaErrorMemoryAllocation;
        }
        slot = events.count++;
    }
    uint64_t life = ++events.creations & ((1u << LIFE_BITS) - 1);
    cudaEvent_t handle =
        (cudaEvent_t)(uintptr_t)handle_make(HANDLE_EVENT, life << SLOT_BITS | slot);
    events.slots[slot] = (event){.handle = handle, .device = call->thread->device, .flags = flags};
    sim.devices[call->thread->device].event_count++;
    *out = handle;
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaEventCreate(cudaEvent_t *out)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventCreate)) {
        call.record.result = create(&call, out, cudaEventDefault);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventCreateWithFlags)) {
        call.record.result = create(&call, out, flags);
    }
    return (cudaError_t)call_leave(&call);
}

static int destroy(sim_call *call, cudaEvent_t handle)
{
    event *e = event_of(call, handle);
    if (!e) {
        return cudaErrorInvalidResourceHandle;
    }
    release((uint32_t)(e - events.slots));
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaEventDestroy(cudaEvent_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventDestroy)) {
        call.record.result = destroy(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

/* The event stands for the nodes that the capture's next work would depend on. */
static int record_in_capture(event *e, const stream *s)
{
    uint32_t *after = malloc((s->capture_after_count + 1) * sizeof *after);
    if (!after) {
        return cudaErrorMemoryAllocation;
    }
    for (uint32_t i = 0; i < s->capture_after_count; i++) {
        after[i] = s->capture_after[i];
    }
    forget(e);
    e->capture_id = capture_id_of(s);
    e->capture_after = after;
    e->capture_count = s->capture_after_count;
    return cudaSuccess;
}

static int record_on(event *e, stream *s)
{
    if (!stream_order_default(s) ||
        (s->head < s->tail && keeps_time(e) &&
         !stream_push(s, (entry){.kind = ENTRY_RECORD, .event = e->handle}))) {
        return cudaErrorMemoryAllocation;
    }
    if (e->capture_id) {
        forget(e);
    }
    point_store(&e->at, stream_point(s));
    e->end_ns = sim.now_ns;
    return cudaSuccess;
}

static int record(sim_call *call, cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags)
{
    event *e = event_of(call, handle);
    stream *s = e ? stream_of(call, stream_handle) : NULL;
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (flags & ~(unsigned)cudaEventRecordExternal ||
        (flags == cudaEventRecordExternal && !s->capture)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "cudaEventRecordExternal outside of a capture, or unknown flags");
    }
    if (e->device != s->device) {
        return call_misuse_of(call, cudaErrorInvalidResourceHandle, "other_device",
                              "the event and the stream belong to different devices");
    }
    int refused = capture_check_work(call, s);
    if (refused) {
        return refused;
    }
    if (flags == cudaEventRecordExternal) {
        entry node = {.kind = ENTRY_RECORD, .event = handle};
        return stream_push(s, node) ? cudaSuccess : cudaErrorMemoryAllocation;
    }
    return s->capture ? record_in_capture(e, s) : record_on(e, s);
}

/* A node of a launched graph records the event on `s`. */
int event_record_by_graph(cudaEvent_t handle, stream *s)
{
    event *e = event_find(handle);
    return e ? record_on(e, s) : cudaSuccess;
}

/* A node of a launched graph makes `s` wait for what the event stands for now. */
int event_wait_by_graph(cudaEvent_t handle, stream *s)
{
    const event *e = event_find(handle);
    return !e || stream_follow(s, e->at) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t gmd_sim_cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventRecord)) {
        call.record.result = record(&call, handle, stream_handle, cudaEventRecordDefault);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle,
                                             unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventRecordWithFlags)) {
        call.record.result = record(&call, handle, stream_handle, flags);
    }
    return (cudaError_t)call_leave(&call);
}

/* The host may not ask for an event that a capture holds, nor for any while one forbids it. */
static int check_asking(sim_call *call, const event *e)
{
    return e->capture_id || capture_is_any() ? capture_check_event(call, e->capture_id) : 0;
}

static int query(sim_call *call, cudaEvent_t handle)
{
    const event *e = event_of(call, handle);
    if (!e) {
        return cudaErrorInvalidResourceHandle;
    }
    int refused = check_asking(call, e);
    if (refused) {
        return refused;
    }
    return learn_if_complete(e) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t gmd_sim_cudaEventQuery(cudaEvent_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventQuery)) {
        call.record.result = query(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

CUresult gmd_sim_cuEventQuery(CUevent handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuEventQuery)) {
        call.record.result =
            call.thread->has_context ? query(&call, handle) : (int)CUDA_ERROR_INVALID_CONTEXT;
    }
    return (CUresult)call_leave(&call);
}

static int synchronize(sim_call *call, cudaEvent_t handle)
{
    const event *e = event_of(call, handle);
    if (!e) {
        return cudaErrorInvalidResourceHandle;
    }
    int refused = check_asking(call, e);
    if (refused || !e->at.on) {
        return refused;
    }
    point recorded = {.on = NULL};
    point_store(&recorded, e->at); /* another thread may record the event anew meanwhile */
    stream_force(recorded.on, recorded.ticket);
    host_learn(recorded);
    pools_synchronised();
    past_drop(recorded.before);
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaEventSynchronize(cudaEvent_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventSynchronize)) {
        call.record.result = synchronize(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

static int elapsed(sim_call *call, float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    const event *first = event_of(call, start);
    const event *last = first ? event_of(call, end) : NULL;
    if (!last) {
        return cudaErrorInvalidResourceHandle;
    }
    if (first->capture_id || last->capture_id) {
        return call_misuse(call, cudaErrorCapturedEvent, "an event was recorded in a capture");
    }
    if (!milliseconds) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the time");
    }
    if (!keeps_time(first) || !keeps_time(last) || !first->at.on || !last->at.on ||
        first->device != last->device) {
        return call_misuse_of(
            call, cudaErrorInvalidResourceHandle, "no_time",
            "an event keeps no time, was never recorded, or is of another device");
    }
    if (!learn_if_complete(first) || !learn_if_complete(last)) {
        return cudaErrorNotReady;
    }
    *milliseconds = (float)(((double)last->end_ns - (double)first->end_ns) / 1e6);
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaEventElapsedTime)) {
        call.record.result = elapsed(&call, milliseconds, start, end);
    }
    return (cudaError_t)call_leave(&call);
}

static int wait_event(sim_call *call, cudaStream_t stream_handle, cudaEvent_t handle,
                      unsigned flags)
{
    stream *s = stream_of(call, stream_handle);
    const event *e = s ? event_of(call, handle) : NULL;
    if (!e) {
        return cudaErrorInvalidResourceHandle;
    }
    if (flags & ~(unsigned)cudaEventWaitExternal ||
        (flags == cudaEventWaitExternal && !s->capture)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "cudaEventWaitExternal outside of a capture, or unknown flags");
    }
    if (flags == cudaEventWaitExternal) {
        entry node = {.kind = ENTRY_WAIT_EVENT, .event = handle};
        return stream_push(s, node) ? cudaSuccess : cudaErrorMemoryAllocation;
    }
    int refused = capture_check_work(call, s);
    if (refused) {
        return refused;
    }
    if (e->capture_id) {
        return capture_wait(call, s, e->capture_id, e->capture_after, e->capture_count);
    }
    if (s->capture && e->at.on) {
        return capture_refuse(call, s, cudaErrorStreamCaptureIsolation,
                              "a capturing stream waits for an event of work outside the capture");
    }
    return stream_order_default(s) && stream_follow(s, e->at) ? cudaSuccess
                                                              : cudaErrorMemoryAllocation;
}

cudaError_t gmd_sim_cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle,
                                        unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamWaitEvent)) {
        call.record.result = wait_event(&call, stream_handle, handle, flags);
    }
    return (cudaError_t)call_leave(&call);
}

/* All that is queued on the device: what a stream that waits for every other one would be after. */
static int record_all(event *e)
{
    stream *all = stream_create(e->device, cudaStreamNonBlocking, 0);
    bool is_recorded = all;
    for (uint32_t id = 0; is_recorded && id < streams.stream_structs; id++) {
        const stream *s = streams.all[id];
        is_recorded = s == all || s->device != e->device || stream_follow(all, stream_point(s));
    }
    is_recorded = is_recorded && record_on(e, all) == cudaSuccess;
    if (all) {
        stream_destroy(all);
    }
    return is_recorded ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static int record_context(sim_call *call, CUcontext context, CUevent handle)
{
    int device = context_device(call, context);
    event *e = device < 0 ? NULL : event_of(call, handle);
    if (!e || e->device != device) {
        return call_misuse(call, CUDA_ERROR_INVALID_HANDLE,
                           "the context or the event is none, or the event is another context's");
    }
    if (capture_stop(device)) { /* as an H200 does, although it is only a question */
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return record_all(e);
}

SIM_DRIVER_CALL(cuCtxRecordEvent, (CUcontext context, CUevent handle),
                record_context(&call, context, handle))

/* --- the driver's forms ------------------------------------------------------------------ */

SIM_DRIVER_CALL(cuEventCreate, (CUevent * out, unsigned flags), create(&call, out, flags))
SIM_DRIVER_CALL(cuEventDestroy_v2, (CUevent handle), destroy(&call, handle))
SIM_DRIVER_CALL(cuEventRecord, (CUevent handle, CUstream on), record(&call, handle, on, 0))
SIM_DRIVER_CALL(cuEventRecordWithFlags, (CUevent handle, CUstream on, unsigned flags),
                record(&call, handle, on, flags))
SIM_DRIVER_CALL(cuEventSynchronize, (CUevent handle), synchronize(&call, handle))
SIM_DRIVER_CALL(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end),
                elapsed(&call, milliseconds, start, end))
SIM_DRIVER_CALL(cuEventElapsedTime_v2, (float *milliseconds, CUevent start, CUevent end),
                milliseconds
                    ? elapsed(&call, milliseconds, start, end)
                    : call_misuse(&call, CUDA_ERROR_INVALID_HANDLE, "no place for the time"))
SIM_DRIVER_CALL(cuStreamWaitEvent, (CUstream on, CUevent handle, unsigned flags),
                wait_event(&call, on, handle, flags))

/* --- control ----------------------------------------------------------------------------- */

bool gmd_sim_event_complete(cudaEvent_t handle)
{
    sim_lock();
    const event *e = event_find(handle);
    bool complete = !e || is_complete(e);
    sim_unlock();
    return complete;
}

/* --- validity ---------------------------------------------------------------------------- */

const char *events_violation(void)
{
    uint64_t counts[GMD_SIM_DEVICE_MAX] = {0};
    uint32_t in_use = 0, spare = 0;
    for (uint32_t slot = 1; slot < events.count; slot++) {
        const event *e = &events.slots[slot];
        if (e->handle) {
            counts[e->device]++;
            in_use++;
        }
        if (e->at.on && (!e->handle || e->at.ticket > e->at.on->tail)) {
            return "an event was recorded on a ticket that was given";
        }
    }
    for (uint32_t slot = events.free_list; slot && spare < events.count;
         slot = events.slots[slot].next_free) {
        spare++;
    }
    if (events.count && in_use + spare != events.count - 1) {
        return "a place for an event is in use or free";
    }
    for (uint32_t d = 0; d < sim.config.device_count; d++) {
        if (sim.devices[d].event_count != counts[d]) {
            return "a device counts its events";
        }
    }
    return NULL;
}
