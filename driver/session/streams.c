#include "gmd_streams.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

void streams_note_refusal(run_streams *s, cudaError_t result, const char *call)
{
    if (result != cudaSuccess && !s->refused.call) {
        s->refused = (refused_call){call, result};
    }
}

/* Every CUDA call of the driver itself must succeed: if not, the device is unusable for the run. */
static gmd_status demand(run_streams *s, cudaError_t result, const char *call, gmd_error *error)
{
    streams_note_refusal(s, result, call);
    return result == cudaSuccess ? GMD_OK
                                 : gmd_fail(error, GMD_FAILED, "the driver's own %s failed: %s",
                                            call, gmd_runtime_error_text(s->runtime, result));
}

void streams_init(run_streams *streams, const gmd_runtime *runtime)
{
    memset(streams, 0, sizeof *streams);
    streams->runtime = runtime;
}

const char *run_streams_violation(const run_streams *streams)
{
    for (int device = 0; device < GMD_MAX_DEVICES; device++) {
        const device_streams *d = streams->devices[device];
        uint64_t created = 0;
        if (d && d->count && d->handles[0]) {
            return "stream 0 is the default one";
        }
        for (uint32_t i = 1; d && i < d->count; i++) {
            created += d->handles[i] != NULL;
        }
        if (d && created != d->created) {
            return "a device counts the streams that the driver has made";
        }
    }
    return NULL;
}

/* What is alive of the streams that the driver made. */
uint64_t streams_created(const run_streams *streams, int device)
{
    return streams->devices[device] ? streams->devices[device]->created : 0;
}

uint32_t streams_index(const run_streams *streams, int device, cudaStream_t handle)
{
    const device_streams *d = streams->devices[device];
    for (uint32_t i = 0; d && i < d->count; i++) {
        if (d->handles[i] == handle && (handle || i == 0)) {
            return i;
        }
    }
    return UINT32_MAX;
}

void streams_close(run_streams *streams)
{
    for (int device = 0; device < GMD_MAX_DEVICES; device++) {
        device_streams *d = streams->devices[device];
        for (uint32_t i = 1; d && i < d->count; i++) {
            if (d->handles[i]) {
                streams->runtime->cudaStreamDestroy(d->handles[i]);
            }
        }
        if (d) {
            free(d->handles);
            free(d);
        }
        streams->devices[device] = NULL;
    }
}

/* Waits of before stay noted: they are long ago for whoever compares. */
void streams_forget(run_streams *streams)
{
    streams->refused.call = NULL;
    for (int device = 0; device < GMD_MAX_DEVICES; device++) {
        device_streams *d = streams->devices[device];
        if (d) {
            d->count = 0;
            d->created = 0;
            memset(d->awaited, 0, sizeof d->awaited);
            d->awaits_untracked = false;
        }
    }
}

static gmd_status no_memory(uint32_t index, gmd_error *error)
{
    return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %u streams", index + 1);
}

static gmd_status make_stream(run_streams *s, device_streams *d, uint32_t index, gmd_error *error)
{
    gmd_status status =
        demand(s, s->runtime->cudaStreamCreateWithFlags(&d->handles[index], cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags", error);
    d->created += status == GMD_OK;
    return status;
}

static gmd_status add_streams(run_streams *s, int device, uint32_t index, gmd_error *error)
{
    device_streams **slot = &s->devices[device];
    if (!*slot && !(*slot = calloc(1, sizeof **slot))) {
        return no_memory(index, error);
    }
    device_streams *d = *slot;
    if (index < d->count) { /* it was destroyed */
        return make_stream(s, d, index, error);
    }
    if (!GMD_GROW(&d->handles, &d->capacity, (size_t)index + 1)) {
        return no_memory(index, error);
    }
    if (d->count == 0) {
        d->handles[d->count++] = NULL;
    }
    while (d->count <= index) {
        gmd_status status = make_stream(s, d, d->count, error);
        if (status != GMD_OK) {
            return status;
        }
        d->count++;
    }
    return GMD_OK;
}

enum { ALREADY_THERE = -1 }; /* no device to go back to */

gmd_status streams_enter(run_streams *streams, int device, int *previous, gmd_error *error)
{
    gmd_status status =
        demand(streams, streams->runtime->cudaGetDevice(previous), "cudaGetDevice", error);
    if (status == GMD_OK && *previous == device) {
        *previous = ALREADY_THERE;
    } else if (status == GMD_OK) {
        status = demand(streams, streams->runtime->cudaSetDevice(device), "cudaSetDevice", error);
    }
    return status;
}

gmd_status streams_leave(run_streams *streams, int previous, gmd_error *error)
{
    return previous == ALREADY_THERE
               ? GMD_OK
               : demand(streams, streams->runtime->cudaSetDevice(previous), "cudaSetDevice", error);
}

bool streams_find(const run_streams *s, int device, uint32_t index, cudaStream_t *handle)
{
    const device_streams *d = s->devices[device];
    if (!d || !d->handles || index >= d->count || (index && !d->handles[index])) {
        return false;
    }
    *handle = d->handles[index];
    return true;
}

gmd_status streams_get(run_streams *streams, int device, uint32_t index, cudaStream_t *handle,
                       gmd_error *error)
{
    if (streams_find(streams, device, index, handle)) {
        return GMD_OK;
    }
    int previous;
    gmd_status status = streams_enter(streams, device, &previous, error);
    if (status != GMD_OK) {
        return status;
    }
    status = add_streams(streams, device, index, error);
    gmd_status left = streams_leave(streams, previous, status == GMD_OK ? error : NULL);
    streams_find(streams, device, index, handle);
    return status == GMD_OK ? left : status;
}

gmd_status streams_destroy(run_streams *streams, int device, uint32_t index, gmd_error *error)
{
    cudaStream_t handle = NULL;
    if (index == 0 || !streams_find(streams, device, index, &handle)) {
        return GMD_OK;
    }
    device_streams *d = streams->devices[device];
    d->handles[index] = NULL;
    d->created--;
    return demand(streams, streams->runtime->cudaStreamDestroy(handle), "cudaStreamDestroy", error);
}

/* On the device of both streams. */
static gmd_status queue_wait(run_streams *s, cudaStream_t waiter, cudaStream_t waited,
                             gmd_error *error)
{
    cudaEvent_t event;
    gmd_status status =
        demand(s, s->runtime->cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
               "cudaEventCreateWithFlags", error);
    if (status != GMD_OK) {
        return status;
    }
    status = demand(s, s->runtime->cudaEventRecord(event, waited), "cudaEventRecord", error);
    if (status == GMD_OK) {
        status = demand(s, s->runtime->cudaStreamWaitEvent(waiter, event, 0), "cudaStreamWaitEvent",
                        error);
    }
    s->runtime->cudaEventDestroy(
        event); /* the wait is queued: CUDA keeps what it needs of the event */
    return status;
}

gmd_status streams_wait(run_streams *streams, int device, uint32_t waiter, uint32_t waited,
                        uint64_t request, gmd_error *error)
{
    cudaStream_t first = NULL, second = NULL;
    int previous;
    gmd_status status = streams_get(streams, device, waiter, &first, error);
    if (status == GMD_OK) {
        status = streams_get(streams, device, waited, &second, error);
    }
    if (status == GMD_OK) {
        status = streams_enter(streams, device, &previous, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    status = queue_wait(streams, first, second, error);
    gmd_status left = streams_leave(streams, previous, status == GMD_OK ? error : NULL);
    if (status == GMD_OK && waiter < GMD_TRACKED_STREAMS && waited < GMD_TRACKED_STREAMS) {
        streams->devices[device]->waited[waiter][waited] = request;
    }
    return status == GMD_OK ? left : status;
}

static gmd_status sync_device(run_streams *s, int device, gmd_error *error)
{
    int previous;
    gmd_status status = streams_enter(s, device, &previous, error);
    if (status != GMD_OK) {
        return status;
    }
    status = demand(s, s->runtime->cudaDeviceSynchronize(), "cudaDeviceSynchronize", error);
    gmd_status left = streams_leave(s, previous, status == GMD_OK ? error : NULL);
    return status == GMD_OK ? left : status;
}

/* On its device: the default stream is that of the current one. */
static gmd_status sync_stream(run_streams *s, int device, cudaStream_t handle, gmd_error *error)
{
    int previous;
    gmd_status status = streams_enter(s, device, &previous, error);
    if (status != GMD_OK) {
        return status;
    }
    status = demand(s, s->runtime->cudaStreamSynchronize(handle), "cudaStreamSynchronize", error);
    gmd_status left = streams_leave(s, previous, status == GMD_OK ? error : NULL);
    return status == GMD_OK ? left : status;
}

gmd_status streams_sync(run_streams *streams, int device, uint32_t index, uint64_t request,
                        gmd_error *error)
{
    if (index == GMD_ALL_STREAMS) {
        for (uint32_t i = 0; i < GMD_TRACKED_STREAMS && streams->devices[device]; i++) {
            streams->devices[device]->synced[i] = request;
        }
        return sync_device(streams, device, error);
    }
    cudaStream_t handle = NULL;
    gmd_status status = streams_get(streams, device, index, &handle, error);
    if (status == GMD_OK) {
        status = sync_stream(streams, device, handle, error);
    }
    if (status == GMD_OK && index < GMD_TRACKED_STREAMS) {
        streams->devices[device]->synced[index] = request;
    }
    return status;
}

static bool is_recorded(const stream_uses *uses, uint32_t stream)
{
    uint64_t bit = (uint64_t)1 << stream % 64;
    return stream < GMD_TRACKED_STREAMS
               ? uses->recorded & bit
               : stream < GMD_RECORDED_STREAMS && uses->recorded_far[stream / 64 - 1] & bit;
}

gmd_status streams_note_use(run_streams *streams, stream_uses *uses, int device, uint32_t owner,
                            uint32_t user, uint64_t request, gmd_error *error)
{
    if (owner == user) {
        return GMD_OK;
    }
    if (is_recorded(uses, user)) {
        uses->last_use = request;
        return GMD_OK;
    }
    if (user >= GMD_TRACKED_STREAMS || owner >= GMD_TRACKED_STREAMS) {
        return streams_wait(streams, device, owner, user, request, error);
    }
    uses->streams |= (uint64_t)1 << user;
    uses->last_use = request;
    return GMD_OK;
}

void streams_note_record(run_streams *streams, stream_uses *uses, int device, uint32_t stream)
{
    if (stream < GMD_TRACKED_STREAMS) {
        uses->recorded |= (uint64_t)1 << stream;
        uses->streams &= ~uses->recorded;
        return;
    }
    if (stream < GMD_RECORDED_STREAMS) {
        uses->recorded_far[stream / 64 - 1] |= (uint64_t)1 << stream % 64;
    }
    uses->recorded_beyond++;
    streams->devices[device]->awaits_untracked = true;
}

void streams_note_gone(stream_uses *uses, uint32_t stream)
{
    if (stream < GMD_TRACKED_STREAMS) {
        uint64_t bit = (uint64_t)1 << stream;
        uses->recorded_beyond += (uses->recorded & bit) != 0;
        uses->recorded &= ~bit;
        uses->streams &= ~bit; /* the host has waited for it */
    } else if (stream < GMD_RECORDED_STREAMS) {
        uses->recorded_far[stream / 64 - 1] &= ~((uint64_t)1 << stream % 64);
    }
}

void streams_note_free(run_streams *streams, const stream_uses *uses, int device, uint32_t owner,
                       uint64_t request)
{
    device_streams *d = streams->devices[device];
    uint64_t users = uses->recorded;
    if (owner < GMD_TRACKED_STREAMS) {
        users |= (uint64_t)1 << owner;
    } else {
        d->awaits_untracked = true;
    }
    for (; users; users &= users - 1) {
        d->awaited[__builtin_ctzll(users)] = request;
    }
}

bool streams_may_free(const run_streams *streams, int device)
{
    const device_streams *d = streams->devices[device];
    bool may_free = d && d->awaits_untracked;
    for (uint32_t i = 0; i < GMD_TRACKED_STREAMS && d && !may_free; i++) {
        may_free = d->awaited[i] > d->synced[i];
    }
    return may_free;
}

gmd_status streams_settle(run_streams *streams, const stream_uses *uses, int device, uint32_t owner,
                          uint64_t request, gmd_error *error)
{
    for (uint64_t left = uses->streams; left; left &= left - 1) {
        uint32_t user = (uint32_t)__builtin_ctzll(left);
        const device_streams *d = streams->devices[device];
        if (d->waited[owner][user] > uses->last_use || d->synced[user] > uses->last_use) {
            continue;
        }
        gmd_status status = streams_wait(streams, device, owner, user, request, error);
        if (status != GMD_OK) {
            return status;
        }
    }
    return GMD_OK;
}
