#include "inline_records.h"

#include "recorded.h"

#include <stdlib.h>

static record *record_at(inline_records *r, uint32_t i)
{
    return i < RECORDS_INLINE ? &r->first[i] : &r->spill[i - RECORDS_INLINE];
}

/* Room for one more; NULL: no host memory. */
static record *add_record(inline_records *r)
{
    uint32_t spilled = r->count < RECORDS_INLINE ? 0 : r->count - RECORDS_INLINE;
    if (r->count >= RECORDS_INLINE && spilled == r->spill_capacity) {
        uint32_t capacity = r->spill_capacity ? 2 * r->spill_capacity : RECORDS_INLINE;
        record *grown = realloc(r->spill, capacity * sizeof *grown);
        if (!grown) {
            return NULL;
        }
        r->spill = grown;
        r->spill_capacity = capacity;
    }
    return record_at(r, r->count++);
}

static bool is_there(inline_records *r, cudaStream_t stream)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (record_at(r, i)->stream == stream && !record_at(r, i)->event) {
            return true;
        }
    }
    return false;
}

void records_add(inline_records *r, cudaStream_t stream, uint32_t inline_most, uint32_t most)
{
    if (is_there(r, stream) || (most && r->count >= most)) {
        return;
    }
    bool replaces = inline_most && r->count >= inline_most;
    record *added = replaces ? record_at(r, inline_most - 1) : add_record(r);
    if (added) {
        *added = (record){.stream = stream};
    } else if (cudaStreamSynchronize(stream) != cudaSuccess) {
        cudaGetLastError();
        cudaDeviceSynchronize();
    }
}

bool is_stream_captured(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) {
        cudaGetLastError();
        return true; /* not known: nothing is done to it */
    }
    return status != cudaStreamCaptureStatusNone;
}

bool records_have_captured(const inline_records *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const record *at = i < RECORDS_INLINE ? &r->first[i] : &r->spill[i - RECORDS_INLINE];
        if (!at->event && is_stream_captured(at->stream)) {
            return true;
        }
    }
    return false;
}

static void wait_for(cudaEvent_t event, cudaStream_t stream, bool on_host)
{
    if (on_host || cudaStreamWaitEvent(stream, event, 0) != cudaSuccess) {
        if (!on_host) {
            cudaGetLastError();
        }
        faulty_wait(event);
    }
}

void records_wait(inline_records *r, cudaStream_t stream, bool on_host)
{
    for (uint32_t i = 0; i < r->count; i++) {
        record *at = record_at(r, i);
        cudaEvent_t event = at->event ? at->event : recorded_event(at->stream);
        if (event) {
            wait_for(event, stream, on_host);
            cudaEventDestroy(event);
        }
    }
    free(r->spill);
    *r = (inline_records){.count = 0};
}

/* Without an event the host has waited; the stream of its block stands in for it. */
void records_forget(inline_records *r, cudaStream_t stream)
{
    for (uint32_t i = 0; i < r->count; i++) {
        record *at = record_at(r, i);
        if (at->stream == stream && !at->event) {
            at->event = recorded_event(stream);
            if (!at->event) {
                *at = *record_at(r, r->count - 1);
                r->count--;
            }
            return;
        }
    }
}
