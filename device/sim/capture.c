/* Capturing streams: what is queued on them becomes a graph instead of being run.
 *
 * Which call is refused when, and what that does to the capture, is as seen with CUDA 13.0 on an
 * H200 (tests/device/conformance_capture.c). */
#include "capture.h"

#include "graphs.h"
#include "streams.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

typedef struct capture {
    uint64_t id;
    stream *origin;
    const sim_thread *thread; /* that began it */
    enum cudaStreamCaptureMode mode;
    bool is_invalid;
    bool owns_graph; /* it was not given by the caller */
    graph *into;
    cudaGraphNode_t *answer; /* the array of the last cudaStreamGetCaptureInfo */
    uint32_t answer_capacity;
    struct capture *next;
} capture;

static struct {
    capture *list;
    uint64_t ids;
} captures;

bool capture_is_any(void)
{
    return captures.list != NULL;
}

bool capture_stop(int device)
{
    bool is_any = false;
    for (capture *c = captures.list; c; c = c->next) {
        if (c->origin->device == device) {
            c->is_invalid = true;
            is_any = true;
        }
    }
    return is_any;
}

uint64_t capture_id_of(const stream *s)
{
    return s->capture ? s->capture->id : 0;
}

static capture *find(uint64_t id)
{
    capture *c = captures.list;
    while (c && c->id != id) {
        c = c->next;
    }
    return c;
}

/* --- what captures forbid ---------------------------------------------------------------- */

/* Whether the capture forbids unsafe calls of the thread. */
static bool forbids(const capture *c, const sim_thread *thread)
{
    if (c->mode == cudaStreamCaptureModeRelaxed ||
        thread->capture_mode == cudaStreamCaptureModeRelaxed) {
        return false;
    }
    return c->thread == thread || (c->mode == cudaStreamCaptureModeGlobal &&
                                   thread->capture_mode == cudaStreamCaptureModeGlobal);
}

int capture_check_unsafe(sim_call *call)
{
    int result = 0;
    for (capture *c = captures.list; c; c = c->next) {
        if (forbids(c, call->thread)) {
            c->is_invalid = true;
            result = call_misuse_of(call, cudaErrorStreamCaptureUnsupported, "unsafe_in_capture",
                                    "a call that may synchronise, while a stream captures");
        }
    }
    return result;
}

int capture_check_device(sim_call *call)
{
    return capture_stop(call->thread->device)
               ? call_misuse_of(call, cudaErrorStreamCaptureUnsupported, "synchronised_in_capture",
                                "the device is synchronised while a stream of its captures")
               : 0;
}

int capture_refuse(sim_call *call, stream *s, int error, const char *sentence)
{
    if (s->capture) {
        s->capture->is_invalid = true;
    }
    return call_misuse(call, error, sentence);
}

int capture_check_event(sim_call *call, uint64_t capture_id)
{
    if (!capture_id) {
        return capture_check_unsafe(call);
    }
    capture *c = find(capture_id);
    if (!c) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "the event was last recorded in a capture that has ended");
    }
    c->is_invalid = true;
    return call_misuse(call, cudaErrorCapturedEvent, "the event was recorded in a capture");
}

/* The capture of a blocking stream, beside which the legacy stream may not be used. */
static capture *blocking_capture(const stream *legacy)
{
    capture *c = stream_is_legacy(legacy) ? captures.list : NULL;
    while (c && (c->origin->device != legacy->device || !stream_is_blocking(c->origin))) {
        c = c->next;
    }
    return c;
}

int capture_check_work(sim_call *call, const stream *s)
{
    if (s->capture && s->capture->is_invalid) {
        return call_misuse(call, cudaErrorStreamCaptureInvalidated,
                           "work on a stream whose capture has been stopped by an error");
    }
    capture *c = captures.list ? blocking_capture(s) : NULL;
    if (!c) {
        return 0;
    }
    c->is_invalid = true;
    return call_misuse(call, cudaErrorStreamCaptureImplicit,
                       "the legacy default stream is used while a blocking stream captures");
}

int capture_check_stream(sim_call *call, stream *s)
{
    if (s->capture) {
        return capture_refuse(call, s, cudaErrorStreamCaptureUnsupported,
                              "the host asks about a stream that captures");
    }
    int refused = capture_check_work(call, s);
    return refused ? refused : capture_check_unsafe(call);
}

/* --- capturing --------------------------------------------------------------------------- */

static bool reserve(stream *s, uint32_t count)
{
    return GMD_GROW(&s->capture_after, &s->capture_after_capacity, count);
}

/* What is captured next on `s` depends on these nodes too. */
static bool depend(stream *s, const uint32_t *after, uint32_t count)
{
    if (!reserve(s, s->capture_after_count + count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t known = 0;
        while (known < s->capture_after_count && s->capture_after[known] != after[i]) {
            known++;
        }
        if (known == s->capture_after_count) {
            s->capture_after[s->capture_after_count++] = after[i];
        }
    }
    return true;
}

bool capture_push(stream *s, const entry *e)
{
    capture *c = s->capture;
    if (!reserve(s, 1) || !graph_add(c->into, e, s->capture_after, s->capture_after_count)) {
        return false;
    }
    s->capture_after[0] = c->into->count - 1;
    s->capture_after_count = 1;
    return true;
}

int capture_wait(sim_call *call, stream *s, uint64_t capture_id, const uint32_t *after,
                 uint32_t count)
{
    capture *c = find(capture_id);
    if (!c) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "the event was last recorded in a capture that has ended");
    }
    if (stream_is_legacy(s)) {
        c->is_invalid = true;
        return call_misuse(call, cudaErrorStreamCaptureImplicit,
                           "the legacy default stream waits for an event of a capture");
    }
    if (s->capture && s->capture != c) {
        s->capture->is_invalid = c->is_invalid = true;
        return call_misuse(call, cudaErrorStreamCaptureMerge,
                           "a capturing stream waits for an event of another capture");
    }
    if (!s->capture) {
        s->capture = c;
        s->capture_after_count = 0;
    }
    return depend(s, after, count) ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* The streams of a capture queue work again; they are found by looking at all that exist. */
static void release_streams(const capture *c)
{
    for (uint32_t i = 0; i < streams.stream_structs; i++) {
        if (streams.all[i]->capture == c) {
            streams.all[i]->capture = NULL;
            streams.all[i]->capture_after_count = 0;
        }
    }
}

static void end(capture *c)
{
    release_streams(c);
    capture **link = &captures.list;
    while (*link != c) {
        link = &(*link)->next;
    }
    *link = c->next;
    free(c->answer);
    free(c);
}

static void abandon(capture *c)
{
    c->into->is_capturing = false;
    if (c->owns_graph) {
        graph_delete(c->into);
    }
    end(c);
}

void capture_leave_stream(stream *s)
{
    if (s->capture && s->capture->origin == s) {
        abandon(s->capture);
    }
    s->capture = NULL;
}

void captures_reset(void)
{
    while (captures.list) {
        abandon(captures.list);
    }
}

/* --- beginning and ending ---------------------------------------------------------------- */

static int check_begin(sim_call *call, const stream *s, enum cudaStreamCaptureMode mode)
{
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (stream_is_legacy(s)) {
        return call_misuse(call, cudaErrorStreamCaptureUnsupported,
                           "the legacy default stream cannot be captured");
    }
    if ((unsigned)mode > cudaStreamCaptureModeRelaxed) {
        return call_misuse(call, cudaErrorInvalidValue, "an unknown mode of capture");
    }
    if (s->capture) {
        return call_misuse(call, cudaErrorIllegalState, "the stream captures already");
    }
    return cudaSuccess;
}

static int begin(sim_call *call, stream *s, graph *into, enum cudaStreamCaptureMode mode)
{
    capture *c = calloc(1, sizeof *c);
    graph *g = into ? into : graph_new();
    if (!c || !g) {
        free(c);
        if (g && !into) {
            graph_delete(g);
        }
        return cudaErrorMemoryAllocation;
    }
    *c = (capture){.id = ++captures.ids,
                   .origin = s,
                   .thread = call->thread,
                   .mode = mode,
                   .owns_graph = !into,
                   .into = g,
                   .next = captures.list};
    captures.list = c;
    g->is_capturing = true;
    s->capture = c;
    s->capture_after_count = 0;
    return cudaSuccess;
}

int capture_begin(sim_call *call, cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    stream *s = stream_of(call, handle);
    int refused = check_begin(call, s, mode);
    return refused ? refused : begin(call, s, NULL, mode);
}

static int set_nodes(sim_call *call, stream *s, const cudaGraphNode_t *nodes, size_t count)
{
    if (!reserve(s, (uint32_t)(s->capture_after_count + count))) {
        return cudaErrorMemoryAllocation;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t number;
        if (!nodes || graph_find_node(nodes[i], &number) != s->capture->into) {
            return call_misuse(call, cudaErrorInvalidValue, "a node is not of the captured graph");
        }
        depend(s, &number, 1);
    }
    return cudaSuccess;
}

int capture_begin_to_graph(sim_call *call, cudaStream_t handle, cudaGraph_t graph_given,
                           const cudaGraphNode_t *nodes, size_t count,
                           enum cudaStreamCaptureMode mode)
{
    stream *s = stream_of(call, handle);
    int refused = check_begin(call, s, mode);
    graph *g = graph_find(graph_given);
    if (!refused && (!g || g->is_capturing)) {
        refused = call_misuse(call, cudaErrorInvalidValue,
                              "there is no such graph, or a capture builds it already");
    }
    if (!refused) {
        refused = begin(call, s, g, mode);
    }
    if (refused) {
        return refused;
    }
    refused = set_nodes(call, s, nodes, count);
    if (refused) {
        abandon(s->capture);
    }
    return refused;
}

/* A stream that joined the capture has work that the origin's next would not depend on. */
static bool is_unjoined(const capture *c)
{
    bool *is_reached = calloc(c->into->count + 1, sizeof *is_reached);
    bool unjoined = is_reached == NULL;
    for (uint32_t i = 0; !unjoined && i < c->origin->capture_after_count; i++) {
        is_reached[c->origin->capture_after[i]] = true;
    }
    for (uint32_t n = c->into->count; !unjoined && n-- > 0;) {
        const graph_node *node = &c->into->nodes[n];
        for (uint32_t i = 0; is_reached[n] && i < node->after_count; i++) {
            is_reached[node->after[i]] = true;
        }
    }
    for (uint32_t i = 0; !unjoined && i < streams.stream_structs; i++) {
        const stream *s = streams.all[i];
        for (uint32_t k = 0; s->capture == c && k < s->capture_after_count; k++) {
            unjoined |= !is_reached[s->capture_after[k]];
        }
    }
    free(is_reached);
    return unjoined;
}

static int end_refused(sim_call *call, capture *c, int error, const char *sentence)
{
    abandon(c);
    return call_misuse(call, error, sentence);
}

int capture_end(sim_call *call, cudaStream_t handle, cudaGraph_t *out)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (out) {
        *out = NULL;
    }
    capture *c = s->capture;
    if (!c) {
        return call_misuse(call, cudaErrorIllegalState, "the stream does not capture");
    }
    if (c->origin != s) {
        return capture_refuse(call, s, cudaErrorStreamCaptureUnmatched,
                              "a capture is ended in another stream than it began in");
    }
    if (c->is_invalid) {
        return end_refused(call, c, cudaErrorStreamCaptureInvalidated,
                           "an error has stopped the capture before");
    }
    if (c->thread != call->thread && c->mode != cudaStreamCaptureModeRelaxed) {
        return end_refused(call, c, cudaErrorStreamCaptureWrongThread,
                           "a capture is ended in another thread than it began in");
    }
    if (is_unjoined(c)) {
        return end_refused(call, c, cudaErrorStreamCaptureUnjoined,
                           "a stream of the capture has not been joined by its first one");
    }
    c->into->is_capturing = false;
    if (out) {
        *out = graph_handle(c->into);
    } else if (c->owns_graph) {
        graph_delete(c->into);
    }
    end(c);
    return cudaSuccess;
}

/* --- questions --------------------------------------------------------------------------- */

static enum cudaStreamCaptureStatus status_of(const stream *s)
{
    return !s->capture              ? cudaStreamCaptureStatusNone
           : s->capture->is_invalid ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
}

int capture_status(sim_call *call, cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    const stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (!status) {
        return call_misuse(call, cudaErrorInvalidValue, "no place for the status");
    }
    if (captures.list && blocking_capture(s)) {
        return call_misuse(call, cudaErrorStreamCaptureImplicit,
                           "the legacy default stream is asked while a blocking stream captures");
    }
    *status = status_of(s);
    return cudaSuccess;
}

/* The nodes that the next captured work depends on, valid until the capture's next such answer. */
static bool put_nodes(const stream *s, const cudaGraphNode_t **nodes, size_t *count)
{
    capture *c = s->capture;
    if (!GMD_GROW(&c->answer, &c->answer_capacity, s->capture_after_count + 1)) {
        return false;
    }
    for (uint32_t i = 0; i < s->capture_after_count; i++) {
        c->answer[i] = graph_node_handle(c->into, s->capture_after[i]);
    }
    if (nodes) {
        *nodes = c->answer;
    }
    if (count) {
        *count = s->capture_after_count;
    }
    return true;
}

int capture_get_info(sim_call *call, cudaStream_t handle, const capture_info *out)
{
    int refused = capture_status(call, handle, out->status);
    const stream *s = refused ? NULL : stream_of(call, handle);
    if (refused || status_of(s) != cudaStreamCaptureStatusActive) {
        return refused;
    }
    if (out->id) {
        *out->id = s->capture->id;
    }
    if (out->graph) {
        *out->graph = graph_handle(s->capture->into);
    }
    if (out->edges) {
        *out->edges = NULL; /* there are only full dependencies */
    }
    return put_nodes(s, out->nodes, out->count) ? cudaSuccess : cudaErrorMemoryAllocation;
}

int capture_update(sim_call *call, cudaStream_t handle, const cudaGraphNode_t *nodes, size_t count,
                   unsigned flags)
{
    stream *s = stream_of(call, handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (!s->capture) {
        return call_misuse(call, cudaErrorIllegalState, "the stream does not capture");
    }
    if (flags > cudaStreamSetCaptureDependencies) {
        return call_misuse(call, cudaErrorInvalidValue, "unknown flags");
    }
    if (flags == cudaStreamSetCaptureDependencies) {
        s->capture_after_count = 0;
    }
    return set_nodes(call, s, nodes, count);
}
