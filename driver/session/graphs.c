#include "graphs.h"

#include "canaries.h"
#include "captures.h"
#include "gmd_grow.h"
#include "sync.h"

#include <stdlib.h>
#include <string.h>

/* --- what must not be asked for while a capture is under way ------------------------------ */

/* What is freed on a captured stream would have to wait for work that is not captured. */
static bool is_use_left_out(const gmd_session *s, const gmd_request *r, const gmd_live_block *b)
{
    bool is_graphs = pool_table_is_of_graph(&s->pools, &s->captures, b);
    return captures_include(&s->captures, b->device, r->stream)
               ? !is_graphs
               : is_graphs || captures_include(&s->captures, b->device, b->stream);
}

/* A captured stream waits for captured work only; whoever waits for that is captured, too, which
 * the default stream cannot be. */
static bool is_wait_left_out(const gmd_session *s, const gmd_request *r)
{
    bool waits = captures_include(&s->captures, r->device, r->stream);
    bool is_waited_for = captures_include(&s->captures, r->device, r->other_stream);
    return waits ? !is_waited_for : is_waited_for && (r->stream == 0 || !stream_bit(r->stream));
}

/* The block's own stream first waits for streams that used the block unrecorded: on both sides of
 * the wait the work must be captured, or on neither. */
static bool is_free_left_out(const gmd_session *s, const session_block *b)
{
    const gmd_live_block *live = &b->live;
    uint64_t captured = live->device == s->captures.device ? s->captures.joined : 0;
    bool is_captured = captured & stream_bit(live->stream);
    return b->is_orphan || (b->uses.streams & (is_captured ? ~captured : captured)) ||
           (is_captured && b->uses.streams &&
            !pool_table_is_of_graph(&s->pools, &s->captures, live));
}

bool session_capture_forbids(const gmd_session *s, const gmd_request *r)
{
    const session_block *b = r->op <= GMD_OP_RECORD ? live_blocks_find(&s->blocks, r->block) : NULL;
    switch (r->op) {
    case GMD_OP_ALLOC: /* the allocator may have to ask the device, which only a captured one may */
        return !captures_include(&s->captures, r->device, r->stream);
    case GMD_OP_SYNC:
        return r->stream == GMD_ALL_STREAMS ||
               !captures_include(&s->captures, r->device, r->stream);
    case GMD_OP_DESTROY:
    case GMD_OP_EMPTY_CACHE:
        return true; /* the host would wait */
    case GMD_OP_WAIT:
        return is_wait_left_out(s, r);
    case GMD_OP_USE:
        return b && is_use_left_out(s, r, &b->live);
    case GMD_OP_FREE:
        return b && is_free_left_out(s, b);
    default:
        return false;
    }
}

/* --- what is captured --------------------------------------------------------------------- */

static gmd_status check_cuda(gmd_session *s, cudaError_t result, const char *what, gmd_error *error)
{
    streams_note_refusal(&s->streams, result, what);
    return result == cudaSuccess ? GMD_OK
                                 : gmd_fail(error, GMD_FAILED, "%s: %s", what,
                                            gmd_runtime_error_text(&s->runtime, result));
}

/* Work that reads and writes the whole block, as block_requests.c queues it elsewhere. How long
 * it takes on a real device is made up for when the graph is launched. */
static cudaError_t queue_work(gmd_session *s, const gmd_request *r, const session_block *b)
{
    cudaStream_t stream = s->captures.handles[r->stream];
    gmd_sim_access work = {b->live.address, b->live.bytes, true};
    size_t count = b->live.bytes ? 1 : 0;
    return s->runtime.sim ? s->runtime.sim->gmd_sim_launch(stream, r->duration_ns, &work, count)
           : s->canaries.table ? session_work_filled(s, b, r->stream, stream)
                               : s->runtime.cudaMemsetAsync((void *)(uintptr_t)b->live.address,
                                                            0xa5, (size_t)b->live.bytes, stream);
}

gmd_status session_capture_use(gmd_session *s, const gmd_request *r, session_block *b,
                               gmd_error *error)
{
    gmd_graph_access access = {.address = b->live.address,
                               .bytes = b->live.bytes,
                               .request = s->request_index,
                               .stream = r->stream};
    gmd_status status = GMD_OK;
    int previous;
    if (s->canaries
            .table) { /* a caller's duty: it comes after what the block's own stream put there */
        status = session_capture_wait(s, b->live.device, r->stream, b->live.stream, error);
    }
    if (status == GMD_OK) {
        status = streams_enter(&s->streams, b->live.device, &previous, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    cudaError_t result = queue_work(s, r, b);
    status = streams_leave(&s->streams, previous, error);
    if (status != GMD_OK || captures_refused(&s->captures, &s->runtime, result)) {
        return status;
    }
    if (!captures_note(&s->captures, &access, r->duration_ns)) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a graph");
    }
    b->uses.streams |= r->stream == b->live.stream ? 0 : stream_bit(r->stream) & ~b->uses.recorded;
    return check_cuda(s, result, "work in a capture", error);
}

/* The stream's next work runs after what is captured on the other one, and is captured, too;
 * `is_done` false: the capture has failed before. */
static gmd_status queue_wait(gmd_session *s, cudaStream_t waiter, cudaStream_t waited,
                             bool *is_done, gmd_error *error)
{
    const gmd_runtime *rt = &s->runtime;
    cudaEvent_t event;
    cudaError_t result = rt->cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (result != cudaSuccess) {
        return check_cuda(s, result, "cudaEventCreate", error);
    }
    result = rt->cudaEventRecord(event, waited);
    if (result == cudaSuccess) {
        result = rt->cudaStreamWaitEvent(waiter, event, 0);
    }
    rt->cudaEventDestroy(event);
    *is_done = result == cudaSuccess;
    return captures_refused(&s->captures, &s->runtime, result)
               ? GMD_OK
               : check_cuda(s, result, "wait in a capture", error);
}

gmd_status session_capture_wait(gmd_session *s, int device, uint32_t waiter, uint32_t waited,
                                gmd_error *error)
{
    capture_set *c = &s->captures;
    cudaStream_t handle = NULL;
    bool is_done = false;
    int previous;
    if (waiter == waited) {
        return GMD_OK;
    }
    gmd_status status = streams_get(&s->streams, device, waiter, &handle, error);
    if (status == GMD_OK) {
        status = streams_enter(&s->streams, device, &previous, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    status = queue_wait(s, handle, c->handles[waited], &is_done, error);
    gmd_status left = streams_leave(&s->streams, previous, status == GMD_OK ? error : NULL);
    if (is_done) {
        captures_join(c, waiter, waited, handle);
    }
    return status == GMD_OK ? left : status;
}

gmd_status session_capture_settle(gmd_session *s, session_block *b, gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (uint64_t left = b->uses.streams; left && status == GMD_OK; left &= left - 1) {
        status = session_capture_wait(s, b->live.device, b->live.stream,
                                      (uint32_t)__builtin_ctzll(left), error);
    }
    return status;
}

void session_capture_sync(gmd_session *s, int device, uint32_t stream)
{
    int previous;
    if (streams_enter(&s->streams, device, &previous, NULL) == GMD_OK) {
        s->captures.is_spoilt = true;
        s->runtime.cudaStreamSynchronize(s->captures.handles[stream]);
        s->runtime.cudaGetLastError();
        streams_leave(&s->streams, previous, NULL);
    }
}

const gmd_graph_access *session_capture_clash(const gmd_session *s, const gmd_live_block *b)
{
    bool is_ours = pool_table_is_of_graph(&s->pools, &s->captures, b) &&
                   captures_include(&s->captures, b->device, b->stream);
    return is_ours ? captures_clash(&s->captures, b->address, b->bytes, b->stream) : NULL;
}

/* --- begin, end, launch ------------------------------------------------------------------- */

/* The order of work on a stream whose number is too high cannot be followed: its requests go to the
 * pool without a capture. */
gmd_status session_begin_capture(gmd_session *s, const gmd_request *r, cudaStream_t stream,
                                 gmd_error *error)
{
    capture_set *c = &s->captures;
    captured_graph *g = captures_add(c);
    if (!g) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a graph");
    }
    g->device = r->device;
    g->pool = r->pool;
    if (r->stream >= GMD_TRACKED_STREAMS) {
        return GMD_OK;
    }
    captures_begin(c, r->device, r->stream, stream, s->request_index);
    s->pools.accepted[r->device].captures = c;
    s->shared->outcome.known_context.has_captured = true;
    return check_cuda(s, s->runtime.cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal),
                      "begin_capture: cudaStreamBeginCapture", error);
}

/* All streams of the capture come together again in the first one, as CUDA demands. */
static gmd_status join(gmd_session *s, gmd_error *error)
{
    capture_set *c = &s->captures;
    gmd_status status = GMD_OK;
    for (uint64_t left = c->joined & ~stream_bit(c->stream); left && status == GMD_OK;
         left &= left - 1) {
        status =
            session_capture_wait(s, c->device, c->stream, (uint32_t)__builtin_ctzll(left), error);
    }
    return status;
}

/* A capture fails by the program's own doing, or by a call of the allocator's: api_misuse names the
 * call on the simulated device; on a real one all other reasons are out of the question. */
static void note_failure(gmd_session *s, cudaError_t result)
{
    s->runtime.cudaGetLastError();
    if (!s->runtime.sim && !s->captures.is_spoilt && result != cudaErrorStreamCaptureWrongThread) {
        static const gmd_pool_failure failure = {
            "capture_failed", "the capture has failed: the allocator made a call that CUDA forbids "
                              "while a stream is captured"};
        s->view.pools.failure = &failure;
    }
}

gmd_status session_end_capture(gmd_session *s, gmd_error *error)
{
    cudaGraph_t graph = NULL;
    if (!s->captures.is_under_way) {
        return GMD_OK;
    }
    gmd_status status = join(s, error);
    cudaStream_t origin = s->captures.handles[s->captures.stream];
    captures_end(&s->captures);
    cudaError_t result = s->runtime.cudaStreamEndCapture(origin, &graph);
    if (result != cudaSuccess || !graph) { /* there is nothing to launch */
        note_failure(s, result);
        return status;
    }
    result = s->runtime.cudaGraphInstantiateWithFlags(
        &s->captures.graphs[s->captures.count - 1].exec, graph, 0);
    s->runtime.cudaGraphDestroy(graph);
    return status == GMD_OK ? check_cuda(s, result, "end_capture: cudaGraphInstantiate", error)
                            : status;
}

/* What was queued in the pool's memory before it was the graph's, and earlier graphs of the pool,
 * come first: a program's duty, where contents are looked at. Later launches come after this one.
 */
static gmd_status wait_for_earlier_work(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    gmd_status status = GMD_OK;
    const device_streams *d = s->streams.devices[r->device];
    for (uint32_t i = 0; i < d->count && status == GMD_OK; i++) {
        cudaStream_t other;
        if (i != r->stream && streams_find(&s->streams, r->device, i, &other)) {
            status = streams_wait(&s->streams, r->device, r->stream, i, s->moment, error);
        }
    }
    return status;
}

gmd_status session_launch(gmd_session *s, const gmd_request *r, cudaStream_t stream,
                          gmd_error *error)
{
    captured_graph *g = captures_latest(&s->captures, r->device, r->pool);
    gmd_status status = GMD_OK;
    int previous;
    if (!g) {
        return GMD_OK;
    }
    if (s->canaries.table && !g->is_launched) {
        status = wait_for_earlier_work(s, r, error);
    }
    if (status == GMD_OK) {
        status = streams_enter(&s->streams, r->device, &previous, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    cudaError_t result = hold_stream(s->holds, r->device, stream, g->duration_ns);
    result = result == cudaSuccess ? s->runtime.cudaGraphLaunch(g->exec, stream) : result;
    g->is_launched = true;
    status = streams_leave(&s->streams, previous, error);
    s->has_used = true;
    s->view.pools.accesses = g->accesses;
    s->view.pools.access_count = g->count;
    return status != GMD_OK ? status : check_cuda(s, result, "launch: cudaGraphLaunch", error);
}

/* --- the end of graphs -------------------------------------------------------------------- */

gmd_status session_destroy_graphs(gmd_session *s, int device, uint32_t pool, uint32_t kept,
                                  gmd_error *error)
{
    capture_set *c = &s->captures;
    uint32_t there = captures_count(c, device, pool);
    if (there <= kept) {
        return GMD_OK;
    }
    gmd_status status = session_sync(s, device, GMD_ALL_STREAMS, error);
    for (size_t i = 0; there > kept && status == GMD_OK;) {
        if (c->graphs[i].device == device && c->graphs[i].pool == pool) {
            if (c->graphs[i].exec) {
                s->runtime.cudaGraphExecDestroy(c->graphs[i].exec);
            }
            captures_drop(c, i);
            there--;
        } else {
            i++;
        }
    }
    return status;
}
