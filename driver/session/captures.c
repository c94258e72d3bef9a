#include "captures.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

bool captures_have_joined(const capture_set *c, cudaStream_t stream)
{
    for (uint64_t left = c->joined; left; left &= left - 1) {
        if (c->handles[__builtin_ctzll(left)] == stream) {
            return true;
        }
    }
    return false;
}

captured_graph *captures_add(capture_set *c)
{
    if (!GMD_GROW(&c->graphs, &c->capacity, c->count + 1)) {
        return NULL;
    }
    captured_graph *g = &c->graphs[c->count++];
    *g = (captured_graph){0};
    return g;
}

void captures_begin(capture_set *c, int device, uint32_t stream, cudaStream_t handle,
                    uint64_t request)
{
    c->device = device;
    c->stream = stream;
    c->joined = stream_bit(stream);
    c->handles[stream] = handle;
    c->began = request;
    c->is_spoilt = c->has_failed = false;
    memset(c->after, 0, sizeof c->after);
    c->is_under_way = true;
}

void captures_join(capture_set *c, uint32_t waiter, uint32_t waited, cudaStream_t handle)
{
    c->joined |= stream_bit(waiter);
    c->handles[waiter] = handle;
    for (size_t i = 0; i < ORDERED_ACCESSES / 64; i++) {
        c->after[waiter][i] |= c->after[waited][i];
    }
}

bool captures_note(capture_set *c, const gmd_graph_access *access, uint64_t duration_ns)
{
    captured_graph *g = &c->graphs[c->count - 1];
    if (!GMD_GROW(&g->accesses, &g->capacity, g->count + 1)) {
        return false;
    }
    if (g->count < ORDERED_ACCESSES) {
        c->after[access->stream][g->count / 64] |= (uint64_t)1 << g->count % 64;
    }
    g->accesses[g->count++] = *access;
    g->duration_ns =
        duration_ns > UINT64_MAX - g->duration_ns ? UINT64_MAX : g->duration_ns + duration_ns;
    return true;
}

void captures_end(capture_set *c)
{
    c->is_under_way = false;
    c->joined = 0;
}

const gmd_graph_access *captures_clash(const capture_set *c, uint64_t address, uint64_t bytes,
                                       uint32_t stream)
{
    const captured_graph *g = &c->graphs[c->count - 1];
    for (size_t i = 0; i < g->count && i < ORDERED_ACCESSES && !c->has_failed; i++) {
        const gmd_graph_access *a = &g->accesses[i];
        bool is_shared =
            a->bytes && bytes && a->address < address + bytes && address < a->address + a->bytes;
        if (is_shared && !(c->after[stream][i / 64] >> i % 64 & 1)) {
            return a;
        }
    }
    return NULL;
}

captured_graph *captures_latest(capture_set *c, int device, uint32_t pool)
{
    size_t i = c->count;
    while (i && (c->graphs[i - 1].device != device || c->graphs[i - 1].pool != pool)) {
        i--;
    }
    return i && c->graphs[i - 1].exec ? &c->graphs[i - 1] : NULL;
}

uint32_t captures_count(const capture_set *c, int device, uint32_t pool)
{
    uint32_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        count += c->graphs[i].device == device && c->graphs[i].pool == pool;
    }
    return count;
}

bool captures_have_graphs(const capture_set *c, int device, uint32_t serial)
{
    return serial && c->count && captures_count(c, device, gmd_pool_number(serial)) > 0;
}

void captures_drop(capture_set *c, size_t index)
{
    free(c->graphs[index].accesses);
    c->count--;
    memmove(&c->graphs[index], &c->graphs[index + 1], (c->count - index) * sizeof *c->graphs);
}

void captures_forget(capture_set *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->graphs[i].accesses);
    }
    free(c->graphs);
    c->graphs = NULL;
    c->count = c->capacity = 0;
    captures_end(c);
}

static const char *graph_violation(const captured_graph *g)
{
    if (g->device < 0 || g->device >= GMD_MAX_DEVICES || g->pool >= GMD_MAX_POOLS) {
        return "a graph is of a device and a pool";
    }
    for (size_t i = 0; i < g->count && g->count <= g->capacity; i++) {
        if (g->accesses[i].stream >= GMD_TRACKED_STREAMS) {
            return "captured work is on a stream whose order is followed";
        }
    }
    return g->count > g->capacity       ? "the work of a graph is in its list"
           : g->is_launched && !g->exec ? "a graph is made before it is launched"
                                        : NULL;
}

static const char *under_way_violation(const capture_set *c)
{
    if (!c->is_under_way) {
        return c->joined ? "streams are captured while a capture is under way" : NULL;
    }
    const captured_graph *latest = c->count ? &c->graphs[c->count - 1] : NULL;
    if (!latest || latest->exec || latest->device != c->device) {
        return "what is captured becomes the latest graph";
    }
    return !(c->joined & stream_bit(c->stream)) ? "the stream that a capture began with is captured"
                                                : NULL;
}

const char *captures_violation(const capture_set *c)
{
    const char *violation =
        c->count > c->capacity ? "graphs are in their list" : under_way_violation(c);
    for (size_t i = 0; i < c->count && !violation; i++) {
        violation = graph_violation(&c->graphs[i]);
    }
    return violation;
}

bool captures_refused(capture_set *c, const gmd_runtime *runtime, cudaError_t result)
{
    bool is_it = result == cudaErrorStreamCaptureInvalidated;
    if (is_it) {
        runtime->cudaGetLastError();
        c->has_failed = true;
    }
    return is_it;
}
