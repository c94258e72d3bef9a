/* The queue-and-clock model, and the stream functions.
 *
 * Streams run side by side, each one entry after another. An entry starts when it is queued, when
 * the entry before it has ended, and, for a wait, when what it waits for has; it ends its duration
 * later. Entries complete in the order in which they end, and have their effect on memory then. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

static struct {
    stream **by_serial; /* [serial, from 1]; NULL: destroyed. Serials are not used again before a
                           reset, so that streams created later have higher handles. */
    uint32_t serials, serial_capacity;
    stream **all;    /* [id]: every structure ever made; active_capacity entries */
    stream **active; /* with queued work, in no order */
    uint32_t active_count, active_capacity;
    stream *free_list, *unnamed; /* unnamed: default streams, which no serial number refers to */
    uint64_t sequence;           /* entries queued, to order what ends at the same time */
    uint32_t stream_structs;
} streams;

static void *grow_array(void *array, uint32_t *capacity, size_t item)
{
    uint32_t larger = *capacity ? *capacity * 2 : 32;
    void *moved = realloc(array, larger * item);
    if (moved) {
        *capacity = larger;
    }
    return moved;
}

/* --- creating and finding ---------------------------------------------------------------- */

/* A new or recycled structure. Tickets go on where its earlier life ended, so that what still
 * refers to that life finds it complete. Room for every structure to be active is made here, so
 * that queueing cannot fail for it. */
static stream *new_stream(int device, unsigned flags, int priority)
{
    stream *s = streams.free_list;
    if (s) {
        streams.free_list = s->next;
    } else {
        if (streams.stream_structs == streams.active_capacity) {
            void *moved = grow_array(streams.active, &streams.active_capacity, sizeof(stream *));
            if (!moved) {
                return NULL;
            }
            streams.active = moved;
            moved = realloc(streams.all, streams.active_capacity * sizeof(stream *));
            if (!moved) {
                return NULL;
            }
            streams.all = moved;
        }
        s = calloc(1, sizeof *s);
        if (!s) {
            return NULL;
        }
        s->id = streams.stream_structs;
        streams.all[streams.stream_structs++] = s;
    }
    s->handle = NULL;
    s->device = device;
    s->flags = flags;
    s->priority = priority;
    s->is_destroyed = false;
    s->saw_default = s->seen_by_default = 0;
    s->end_ns = 0;
    return s;
}

static void recycle(stream *s)
{
    s->next = streams.free_list;
    streams.free_list = s;
}

static stream *create_stream(int device, unsigned flags, int priority)
{
    if (streams.serials == streams.serial_capacity) {
        void *moved = grow_array(streams.by_serial, &streams.serial_capacity, sizeof(stream *));
        if (!moved) {
            return NULL;
        }
        streams.by_serial = moved;
    }
    stream *s = new_stream(device, flags, priority);
    if (s) {
        s->handle = (cudaStream_t)(uintptr_t)handle_make(HANDLE_STREAM, streams.serials);
        streams.by_serial[streams.serials++] = s;
        sim.devices[device].stream_count++;
    }
    return s;
}

static stream *create_unnamed(int device)
{
    stream *s = new_stream(device, cudaStreamDefault, 0);
    if (s) {
        s->next = streams.unnamed;
        streams.unnamed = s;
    }
    return s;
}

static stream *thread_default(sim_thread *thread)
{
    stream **slot = &thread->default_stream[thread->device];
    if (!*slot) {
        *slot = create_unnamed(thread->device);
    }
    return *slot;
}

stream *stream_find(sim_thread *thread, cudaStream_t handle)
{
    if (handle == NULL || handle == cudaStreamLegacy) {
        return sim.devices[thread->device].legacy;
    }
    if (handle == cudaStreamPerThread) {
        return thread_default(thread);
    }
    uint64_t serial = handle_serial((uintptr_t)handle, HANDLE_STREAM);
    return serial < streams.serials ? streams.by_serial[serial] : NULL;
}

stream *stream_of(sim_call *call, cudaStream_t handle)
{
    stream *s = stream_find(call->thread, handle);
    if (!s) {
        call_misuse(call, 0,
                    "the stream was never created, or is destroyed or from before a reset");
    }
    return s;
}

stream *stream_by_id(uint32_t id)
{
    return id < streams.stream_structs ? streams.all[id] : NULL;
}

static bool is_default(const stream *s)
{
    return s == sim.devices[s->device].legacy;
}

static bool is_blocking(const stream *s)
{
    return !(s->flags & cudaStreamNonBlocking);
}

/* --- queueing ---------------------------------------------------------------------------- */

static entry *entry_at(const stream *s, uint64_t ticket)
{
    return &s->ring[(ticket - 1) & (s->ring_size - 1)];
}

static bool grow_ring(stream *s)
{
    uint64_t size = s->ring_size ? s->ring_size * 2 : 16;
    entry *ring = malloc(size * sizeof *ring);
    if (!ring) {
        return false;
    }
    for (uint64_t t = s->head + 1; t <= s->tail; t++) {
        ring[(t - 1) & (size - 1)] = *entry_at(s, t);
    }
    free(s->ring);
    s->ring = ring;
    s->ring_size = size;
    return true;
}

static void activate(stream *s)
{
    s->active_index = streams.active_count;
    streams.active[streams.active_count++] = s;
}

static void deactivate(stream *s)
{
    stream *last = streams.active[--streams.active_count];
    streams.active[s->active_index] = last;
    last->active_index = s->active_index;
    if (s->is_destroyed) {
        recycle(s);
    }
}

static void complete(stream *s, uint64_t end_ns)
{
    entry *e = entry_at(s, s->head + 1);
    s->end_ns = end_ns;
    s->head++;
    if (e->kind == ENTRY_RECORD) {
        event_recorded(e->event, s, s->head, end_ns);
    } else if (e->kind != ENTRY_WAIT) {
        copy_complete(e);
    }
    if (s->head == s->tail) {
        deactivate(s);
    }
}

bool stream_push(stream *s, entry e)
{
    if (s->tail - s->head == s->ring_size && !grow_ring(s)) {
        return false;
    }
    e.queued_ns = sim.now_ns;
    e.sequence = ++streams.sequence;
    if (s->head == s->tail) {
        activate(s);
    }
    *entry_at(s, ++s->tail) = e;
    if (sim.config.schedule == GMD_SIM_EAGER) {
        complete(s, sim.now_ns); /* nothing is ever pending here, so neither is what it waits for */
    }
    return true;
}

static bool push_wait(stream *s, stream *on, uint64_t ticket)
{
    return stream_push(s, (entry){.kind = ENTRY_WAIT, .wait = {.on = on, .ticket = ticket}});
}

bool stream_follow(stream *s, point p)
{
    return !p.on || p.on == s || p.on->head >= p.ticket || push_wait(s, p.on, p.ticket);
}

/* Work on the default stream starts after all earlier work of the device's blocking streams... */
static bool order_default_after_all(stream *s)
{
    for (uint32_t i = 0; i < streams.active_count; i++) {
        stream *other = streams.active[i];
        if (other != s && other->device == s->device && is_blocking(other) &&
            other->seen_by_default < other->tail) {
            if (!push_wait(s, other, other->tail)) {
                return false;
            }
            other->seen_by_default = other->tail;
        }
    }
    return true;
}

/* ... and work on those starts after all earlier work of the default stream. */
bool stream_order_default(stream *s)
{
    if (streams.active_count == 0 || !is_blocking(s)) {
        return true;
    }
    if (is_default(s)) {
        return order_default_after_all(s);
    }
    stream *first = sim.devices[s->device].legacy;
    if (first->head == first->tail || s->saw_default == first->tail) {
        return true;
    }
    s->saw_default = first->tail;
    return push_wait(s, first, first->tail);
}

uint64_t stream_pending(const stream *s)
{
    return s->tail - s->head;
}

/* --- the clock --------------------------------------------------------------------------- */

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* The first entry of an active stream can complete; when it ends. */
static bool can_complete(const stream *s, uint64_t *end_ns)
{
    const entry *e = entry_at(s, s->head + 1);
    uint64_t start = s->end_ns > e->queued_ns ? s->end_ns : e->queued_ns;
    if (e->kind != ENTRY_WAIT) {
        *end_ns = add_saturating(start, e->duration_ns);
        return true;
    }
    *end_ns = start > e->wait.on->end_ns ? start : e->wait.on->end_ns;
    return e->wait.on->head >= e->wait.ticket;
}

/* The stream whose first entry ends next, among all or only those that are needed; NULL: none. */
static stream *next_to_complete(bool needed_only, uint64_t *end_ns)
{
    stream *best = NULL;
    *end_ns = 0;
    for (uint32_t i = 0; i < streams.active_count; i++) {
        stream *s = streams.active[i];
        uint64_t end;
        if ((needed_only && s->need <= s->head) || !can_complete(s, &end)) {
            continue;
        }
        if (!best || end < *end_ns ||
            (end == *end_ns &&
             entry_at(s, s->head + 1)->sequence < entry_at(best, best->head + 1)->sequence)) {
            best = s;
            *end_ns = end;
        }
    }
    return best;
}

static void complete_until(uint64_t now_ns)
{
    uint64_t end;
    for (stream *s; (s = next_to_complete(false, &end)) && end <= now_ns;) {
        complete(s, end);
    }
}

static bool anything_needed(void)
{
    for (uint32_t i = 0; i < streams.active_count; i++) {
        if (streams.active[i]->need > streams.active[i]->head) {
            return true;
        }
    }
    return false;
}

/* Passes the need of a stream on to those that its entries wait for; true when that changed one. */
static bool follow_waits(stream *s)
{
    bool changed = false;
    uint64_t from = s->need_followed > s->head ? s->need_followed : s->head;
    for (uint64_t t = from + 1; t <= s->need; t++) {
        const entry *e = entry_at(s, t);
        if (e->kind == ENTRY_WAIT && e->wait.on->need < e->wait.ticket) {
            e->wait.on->need = e->wait.ticket;
            changed = true;
        }
    }
    s->need_followed = s->need > from ? s->need : from;
    return changed;
}

static void follow_all_waits(void)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < streams.active_count; i++) {
            changed |= follow_waits(streams.active[i]);
        }
    }
}

/* Makes time pass until nothing is needed any more. A wait refers to a ticket that was queued
 * before it, so something can always complete. */
static void force_needed(void)
{
    bool is_lazy = sim.config.schedule == GMD_SIM_LAZY;
    sim.forced_waits++;
    if (is_lazy) {
        follow_all_waits();
    }
    while (anything_needed()) {
        uint64_t end;
        stream *s = next_to_complete(is_lazy, &end);
        if (!s) {
            abort(); /* a cycle of waits: the simulator itself is broken */
        }
        complete(s, end);
        sim.now_ns = end > sim.now_ns ? end : sim.now_ns;
    }
    if (!is_lazy) {
        complete_until(sim.now_ns);
    }
}

void stream_force(stream *s, uint64_t ticket)
{
    if (s->head < ticket) {
        s->need = ticket;
        force_needed();
    }
}

void streams_force_device(int device)
{
    bool is_needed = false;
    for (uint32_t i = 0; i < streams.active_count; i++) {
        stream *s = streams.active[i];
        if (device < 0 || s->device == device) {
            s->need = s->tail;
            is_needed = true;
        }
    }
    if (is_needed) {
        force_needed();
    }
}

/* --- reset ------------------------------------------------------------------------------- */

static void drop_work(stream *s)
{
    for (uint64_t t = s->head + 1; t <= s->tail; t++) {
        copy_drop(entry_at(s, t));
    }
    s->head = s->tail;
}

bool streams_reset(void)
{
    for (uint32_t i = 0; i < streams.active_count; i++) {
        drop_work(streams.active[i]);
        if (streams.active[i]->is_destroyed) {
            recycle(streams.active[i]);
        }
    }
    streams.active_count = 0;
    for (uint32_t i = 1; i < streams.serials; i++) {
        if (streams.by_serial[i]) {
            recycle(streams.by_serial[i]);
        }
    }
    for (stream *s; (s = streams.unnamed);) {
        streams.unnamed = s->next;
        recycle(s);
    }
    streams.serials = 1;
    if (!streams.by_serial) {
        streams.by_serial = grow_array(NULL, &streams.serial_capacity, sizeof(stream *));
    }
    if (!streams.by_serial) {
        return false;
    }
    streams.by_serial[0] = NULL; /* what a handle that is none finds */
    bool complete_set = true;
    for (uint32_t d = 0; d < sim.config.device_count; d++) {
        sim.devices[d].legacy = create_unnamed((int)d);
        complete_set &= sim.devices[d].legacy != NULL;
    }
    return complete_set;
}

void streams_reset_device(int device)
{
    for (uint32_t i = streams.active_count; i-- > 0;) {
        stream *s = streams.active[i];
        if (s->device == device) {
            drop_work(s);
            deactivate(s);
        }
    }
    for (uint32_t i = 1; i < streams.serials; i++) {
        stream *s = streams.by_serial[i];
        if (s && s->device == device) {
            streams.by_serial[i] = NULL;
            recycle(s);
        }
    }
    sim.devices[device].stream_count = 0;
}

/* --- the API ----------------------------------------------------------------------------- */

/* Hopper's range: 0 is the lowest priority, -5 the highest; others are clamped to it. */
enum { PRIORITY_LEAST = 0, PRIORITY_GREATEST = -5 };

static int create(sim_call *call, cudaStream_t *out, unsigned flags, int priority)
{
    if (!out) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the new stream");
    }
    if (flags & ~(unsigned)cudaStreamNonBlocking) {
        return call_misuse(call, cudaErrorInvalidValue, "unknown stream flags");
    }
    priority = priority > PRIORITY_LEAST      ? PRIORITY_LEAST
               : priority < PRIORITY_GREATEST ? PRIORITY_GREATEST
                                              : priority;
    stream *s = create_stream(call->thread->device, flags, priority);
    if (!s) {
        return cudaErrorMemoryAllocation;
    }
    *out = s->handle;
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaStreamCreate(cudaStream_t *out)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamCreate)) {
        call.record.result = create(&call, out, cudaStreamDefault, 0);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamCreateWithFlags)) {
        call.record.result = create(&call, out, flags, 0);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags,
                                                 int priority)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamCreateWithPriority)) {
        call.record.result = create(&call, out, flags, priority);
    }
    return (cudaError_t)call_leave(&call);
}

static int priority_range(int *least, int *greatest)
{
    if (least) {
        *least = PRIORITY_LEAST;
    }
    if (greatest) {
        *greatest = PRIORITY_GREATEST;
    }
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceGetStreamPriorityRange)) {
        call.record.result = priority_range(least, greatest);
    }
    return (cudaError_t)call_leave(&call);
}

static int get_flags(sim_call *call, cudaStream_t handle, unsigned *flags)
{
    const stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (!flags) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the stream's flags");
    }
    *flags = s->flags;
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaStreamGetFlags(cudaStream_t handle, unsigned int *flags)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamGetFlags)) {
        call.record.result = get_flags(&call, handle, flags);
    }
    return (cudaError_t)call_leave(&call);
}

static int get_priority(sim_call *call, cudaStream_t handle, int *priority)
{
    const stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (!priority) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the stream's priority");
    }
    *priority = s->priority;
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamGetPriority)) {
        call.record.result = get_priority(&call, handle, priority);
    }
    return (cudaError_t)call_leave(&call);
}

/* Returns at once; queued work still completes. */
static int destroy(sim_call *call, cudaStream_t handle)
{
    if (handle == NULL || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
        return call_misuse(call, cudaErrorInvalidResourceHandle,
                           "a default stream cannot be destroyed");
    }
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    streams.by_serial[handle_serial((uintptr_t)handle, HANDLE_STREAM)] = NULL;
    sim.devices[s->device].stream_count--;
    s->is_destroyed = true;
    if (s->head == s->tail) {
        recycle(s);
    }
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaStreamDestroy(cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamDestroy)) {
        call.record.result = destroy(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

/* Asking about the default stream asks about all that its next work would wait for. */
static int query(sim_call *call, cudaStream_t handle)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (is_default(s) && !stream_order_default(s)) {
        return cudaErrorMemoryAllocation;
    }
    return s->head == s->tail ? cudaSuccess : cudaErrorNotReady;
}

static int synchronize(sim_call *call, cudaStream_t handle)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (is_default(s) && !stream_order_default(s)) {
        return cudaErrorMemoryAllocation;
    }
    stream_force(s, s->tail);
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaStreamQuery(cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamQuery)) {
        call.record.result = query(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaStreamSynchronize(cudaStream_t handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaStreamSynchronize)) {
        call.record.result = synchronize(&call, handle);
    }
    return (cudaError_t)call_leave(&call);
}

CUresult gmd_sim_cuStreamQuery(CUstream handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuStreamQuery)) {
        call.record.result =
            call.thread->has_context ? query(&call, handle) : (int)CUDA_ERROR_INVALID_CONTEXT;
    }
    return (CUresult)call_leave(&call);
}

CUresult gmd_sim_cuStreamSynchronize(CUstream handle)
{
    sim_call call;
    if (call_enter(&call, CALL_cuStreamSynchronize)) {
        call.record.result =
            call.thread->has_context ? synchronize(&call, handle) : (int)CUDA_ERROR_INVALID_CONTEXT;
    }
    return (CUresult)call_leave(&call);
}

cudaError_t gmd_sim_cudaDeviceSynchronize(void)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaDeviceSynchronize)) {
        streams_force_device(call.thread->device);
    }
    return (cudaError_t)call_leave(&call);
}

/* --- control ----------------------------------------------------------------------------- */

static bool are_live(const gmd_sim_access *accesses, size_t count, int device)
{
    uint64_t bad;
    for (size_t i = 0; i < count; i++) {
        if (!memory_is_usable(accesses[i].address, accesses[i].size, device, &bad)) {
            return false;
        }
    }
    return true;
}

static int launch(sim_call *call, cudaStream_t handle, uint64_t duration_ns,
                  const gmd_sim_access *accesses, size_t count)
{
    if (!accesses && count) {
        return call_misuse(call, cudaErrorInvalidValue, "accesses are counted but not given");
    }
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (!stream_order_default(s) ||
        !stream_push(s, (entry){.kind = ENTRY_KERNEL, .duration_ns = duration_ns})) {
        return cudaErrorMemoryAllocation;
    }
    return are_live(accesses, count, s->device)
               ? cudaSuccess
               : call_misuse(call, cudaSuccess, "a kernel touches memory that is not allocated");
}

cudaError_t gmd_sim_launch(cudaStream_t handle, uint64_t duration_ns,
                           const gmd_sim_access *accesses, size_t access_count)
{
    sim_call call;
    if (call_enter(&call, CALL_kernel)) {
        call.record.result = launch(&call, handle, duration_ns, accesses, access_count);
    }
    return (cudaError_t)call_leave(&call);
}

uint64_t gmd_sim_now(void)
{
    sim_lock();
    uint64_t now = sim.now_ns;
    sim_unlock();
    return now;
}

void gmd_sim_advance(uint64_t duration_ns)
{
    sim_lock();
    sim_start();
    uint64_t to = add_saturating(sim.now_ns, duration_ns);
    if (sim.config.schedule == GMD_SIM_TIMED) {
        complete_until(to);
    }
    sim.now_ns = to;
    sim_unlock();
}

uint64_t gmd_sim_pending(cudaStream_t handle)
{
    sim_lock();
    sim_start();
    const stream *s = stream_find(sim_this_thread(), handle);
    uint64_t pending = s ? stream_pending(s) : 0;
    sim_unlock();
    return pending;
}

uint64_t gmd_sim_forced_waits(void)
{
    sim_lock();
    uint64_t count = sim.forced_waits;
    sim_unlock();
    return count;
}
