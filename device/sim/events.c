/* Events. A record stores the stream and its tail; the event is complete when the stream's head has
 * got there. Only an event that keeps time costs a queue entry, and only on a busy stream. */
#include "state.h"

#include <stdlib.h>

typedef struct event {
    cudaEvent_t handle; /* NULL: free */
    int device;
    unsigned flags;
    point at;        /* on nothing: never recorded */
    uint64_t end_ns; /* when it completed; meaningful once it has */
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
        call_misuse(call, 0, "the event was never created, or is destroyed or from before a reset");
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
        past_drop(events.slots[slot].at.before);
    }
    events.count = 1;
    events.free_list = 0;
}

static void release(uint32_t slot)
{
    event *e = &events.slots[slot];
    sim.devices[e->device].event_count--;
    point_store(&e->at, (point){.on = NULL});
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

static int record(sim_call *call, cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags)
{
    event *e = event_of(call, handle);
    stream *s = e ? stream_of(call, stream_handle) : NULL;
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (flags != cudaEventRecordDefault) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "cudaEventRecordExternal outside of a capture, or unknown flags");
    }
    if (e->device != s->device) {
        return call_misuse(call, cudaErrorInvalidResourceHandle,
                           "the event and the stream belong to different devices");
    }
    if (!stream_order_default(s) ||
        (s->head < s->tail && keeps_time(e) &&
         !stream_push(s, (entry){.kind = ENTRY_RECORD, .event = handle}))) {
        return cudaErrorMemoryAllocation;
    }
    point_store(&e->at, stream_point(s));
    e->end_ns = sim.now_ns;
    return cudaSuccess;
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

static int query(sim_call *call, cudaEvent_t handle)
{
    const event *e = event_of(call, handle);
    if (!e) {
        return cudaErrorInvalidResourceHandle;
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
    if (e->at.on) {
        stream_force(e->at.on, e->at.ticket);
        host_learn(e->at);
    }
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
    if (!milliseconds) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the time");
    }
    if (!keeps_time(first) || !keeps_time(last) || !first->at.on || !last->at.on ||
        first->device != last->device) {
        return call_misuse(call, cudaErrorInvalidResourceHandle,
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
    if (flags != cudaEventWaitDefault) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "cudaEventWaitExternal outside of a capture, or unknown flags");
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

bool gmd_sim_event_complete(cudaEvent_t handle)
{
    sim_lock();
    const event *e = event_find(handle);
    bool complete = !e || is_complete(e);
    sim_unlock();
    return complete;
}
