#include "requests.h"

#include "block_requests.h"
#include "blocks.h"
#include "captures.h"
#include "checkpoints.h"
#include "contract_duties.h"
#include "frames.h"
#include "gmd_host_clock.h"
#include "graphs.h"
#include "journal_writer.h"
#include "pools.h"
#include "probe.h"
#include "sync.h"
#include "view.h"
#include "wrong_frees.h"

#include <inttypes.h>
#include <stdio.h>

static gmd_status do_fault(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    if (!s->runtime.sim) {
        return gmd_fail(error, GMD_BAD_INPUT, "fault: needs the simulated device");
    }
    const gmd_trace *t = s->workload->trace;
    const char *function =
        t && r->function < t->functions.count ? t->functions.items[r->function] : "";
    known_context *context = &s->shared->outcome.known_context;
    if (context->fault_count < sizeof context->faults / sizeof *context->faults) {
        snprintf(context->faults[context->fault_count++], sizeof *context->faults, "%s", function);
    }
    return fault_plant(&s->faults, &s->runtime, r, function, s->request_index, error);
}

/* A trace's fraction is one of the capacity that the trace states: a real device has another. */
static double fraction_here(const gmd_session *s, const gmd_request *r)
{
    const gmd_trace *t = s->workload->trace;
    uint64_t total = s->limits.total[r->device];
    if (s->runtime.sim || !t || !t->conditions.capacity_bytes ||
        t->conditions.capacity_bytes >= total) {
        return r->fraction;
    }
    return fraction_for((uint64_t)(r->fraction * (double)t->conditions.capacity_bytes), total);
}

static void do_fraction(gmd_session *s, const gmd_request *r)
{
    if (!s->subject.set_memory_fraction) {
        return;
    }
    double fraction = fraction_here(s, r);
    call_frame frame;
    enter_allocator(s, "gmd_set_memory_fraction", &frame);
    s->subject.set_memory_fraction(fraction, r->device);
    leave_allocator(s, &frame);
    if (s->view.faults.hit) { /* the allocator may have kept its earlier limit */
        limits_set_unknown(&s->limits, r->device);
    } else {
        limits_set(&s->limits, r->device,
                   (uint64_t)(fraction * (double)s->limits.total[r->device]));
    }
    s->view.limits.bytes = s->limits.bytes[r->device];
}

/* Work on a destroyed stream can no longer be ordered before a free: a block that is live on it, or
 * used there unrecorded, is waited for first. */
static bool is_stream_in_use(const gmd_session *s, const gmd_request *r)
{
    const session_block *b = NULL;
    for (uint32_t id = 0; (b = live_blocks_next(&s->blocks, &id)) != NULL;) {
        if (b->live.device == r->device &&
            (b->live.stream == r->stream || r->stream >= GMD_TRACKED_STREAMS ||
             (b->uses.streams & (uint64_t)1 << r->stream))) {
            return true;
        }
    }
    return false;
}

static void tell_of_destroy(gmd_session *s, const gmd_request *r)
{
    cudaStream_t handle = NULL;
    call_frame frame;
    if (s->subject.forget_stream && r->stream &&
        streams_find(&s->streams, r->device, r->stream, &handle)) {
        enter_allocator(s, "gmd_forget_stream", &frame);
        s->subject.forget_stream(r->device, handle);
        leave_allocator(s, &frame);
    }
}

/* A stream that is made later under the same name is another one: none of its work is recorded. The
 * allocator may still wait for the one that is gone. */
static void forget_stream(gmd_session *s, const gmd_request *r)
{
    session_block *b = NULL;
    for (uint32_t id = 0; (b = live_blocks_next(&s->blocks, &id)) != NULL;) {
        if (b->live.device == r->device) {
            streams_note_gone(&b->uses, r->stream);
            b->is_orphan = b->is_orphan || b->live.stream == r->stream;
        }
    }
}

/* A new stream may get the handle of this one. An allocator that is not told of the end of a stream
 * keeps what it has under the handle: by then no work of the old stream may be left. */
static bool must_be_over(const gmd_session *s)
{
    return s->options->conditions.reuses_handles && !s->subject.forget_stream;
}

static gmd_status do_destroy(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    tell_of_destroy(s, r);
    gmd_status status = GMD_OK;
    bool may_run_graphs = s->canaries.table && s->captures.count; /* a later one comes after them */
    if (is_stream_in_use(s, r) || may_run_graphs || must_be_over(s)) {
        status = session_sync(s, r->device, r->stream, error);
    }
    if (status == GMD_OK) {
        status = streams_destroy(&s->streams, r->device, r->stream, error);
        forget_stream(s, r);
        checkpoints_forget_stream(s, r->device, r->stream);
    }
    return status;
}

static gmd_status do_device(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    cudaError_t result = s->runtime.cudaSetDevice(r->device);
    return result == cudaSuccess ? GMD_OK
                                 : gmd_fail(error, GMD_FAILED, "device %u: cudaSetDevice: %s",
                                            r->device, gmd_runtime_error_text(&s->runtime, result));
}

static gmd_status do_budget(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    if (!s->runtime.sim) {
        return gmd_fail(error, GMD_BAD_INPUT, "budget: needs the simulated device");
    }
    s->runtime.sim->gmd_sim_budget(r->device, r->bytes);
    limits_set_budget(&s->limits, r->device, r->bytes);
    return GMD_OK;
}

static gmd_status do_on_block(gmd_session *s, const gmd_request *r, gmd_live_block *freed,
                              gmd_error *error)
{
    session_block *b = live_blocks_at(&s->blocks, r->block);
    if (!b || !b->live.address) {
        return b ? GMD_OK : gmd_fail(error, GMD_NO_MEMORY, "no host memory for block %u", r->block);
    }
    view_device(s, b->live.device);
    if (r->op == GMD_OP_FREE) {
        return block_free(s, b, freed, error);
    }
    gmd_status status =
        r->op == GMD_OP_USE ? block_use(s, r, b, error) : block_record(s, r, b, error);
    if (s->interleaving.overlap) { /* it changes no figure, but others have, or are about to */
        view_refresh(s);
    }
    return status;
}

static gmd_status do_elsewhere(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    switch (r->op) {
    case GMD_OP_WAIT:
        if (captures_include(&s->captures, r->device, r->other_stream)) {
            return session_capture_wait(s, r->device, r->stream, r->other_stream, error);
        }
        return streams_wait(&s->streams, r->device, r->stream, r->other_stream, s->moment, error);
    case GMD_OP_SYNC:
        if (captures_include(&s->captures, r->device, r->stream)) {
            session_capture_sync(s, r->device, r->stream);
            return GMD_OK;
        }
        return session_sync(s, r->device, r->stream, error);
    case GMD_OP_ADVANCE:
        if (s->runtime.sim) {
            s->runtime.sim->gmd_sim_advance(r->duration_ns);
        }
        if (s->options->conditions.moves_clock) {
            host_clock_advance(r->duration_ns);
        }
        holds_advance(s->holds, r->duration_ns);
        return GMD_OK;
    case GMD_OP_EMPTY_CACHE:
        if (s->subject.empty_cache) {
            call_frame frame;
            enter_allocator(s, "gmd_empty_cache", &frame);
            s->subject.empty_cache();
            leave_allocator(s, &frame);
        }
        return GMD_OK;
    case GMD_OP_FRACTION:
        do_fraction(s, r);
        return GMD_OK;
    case GMD_OP_FAULT:
        return do_fault(s, r, error);
    case GMD_OP_DEVICE:
        return do_device(s, r, error);
    case GMD_OP_DESTROY:
        s->shared->outcome.known_context.has_destroyed = true;
        return do_destroy(s, r, error);
    case GMD_OP_BUDGET:
        return do_budget(s, r, error);
    case GMD_OP_LEAVE_ERROR:
        s->shared->outcome.known_context.has_left_error = true;
        s->runtime.cudaSetDevice(-1);
        return GMD_OK;
    case GMD_OP_BEGIN_POOL:
    case GMD_OP_END_POOL:
    case GMD_OP_BEGIN_CAPTURE:
    case GMD_OP_END_CAPTURE:
    case GMD_OP_LAUNCH:
    case GMD_OP_RELEASE_POOL:
    case GMD_OP_CHECKPOINT_POOL:
    case GMD_OP_RESTORE_POOL:
        return session_on_pool(s, r, error);
    default:
        return gmd_fail(error, GMD_FAILED, "request %" PRIu64 ": unknown operation %d",
                        s->request_index, r->op);
    }
}

/* The view stays on the request's device, wherever the wrong frees are. */
static void free_wrongly(gmd_session *s, const gmd_request *r, const gmd_live_block *freed)
{
    int device = s->view.device;
    bool is_free = r->op == GMD_OP_FREE && s->view.block;
    if (is_free) {
        session_free_wrongly(s, freed);
    }
    if (is_free || r->op == GMD_OP_EMPTY_CACHE) {
        session_free_stale(s);
        view_device(s, device);
    }
}

gmd_status carry_out_request(gmd_session *s, const gmd_request *r, gmd_served *served,
                             gmd_error *error)
{
    if (r->device >= s->device_count) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "request %" PRIu64 " is for device %d, and there are %d (the first is 0)",
                        s->request_index, r->device, s->device_count);
    }
    if (s->captures.is_under_way && session_capture_forbids(s, r)) {
        return GMD_OK;
    }
    if (session_contract_forbids(s, r)) {
        *served = r->op == GMD_OP_ALLOC && r->bytes ? GMD_OUT_OF_MEMORY : GMD_SERVED;
        return GMD_OK;
    }
    gmd_live_block freed;
    s->moment++;
    s->shared->outcome.known_context.has_second_device |= r->device > 0;
    journal_writer_begin(s, r);
    view_device(s, r->device);
    gmd_status status;
    switch (r->op) {
    case GMD_OP_ALLOC:
        status = block_alloc(s, r, served, error);
        break;
    case GMD_OP_FREE:
    case GMD_OP_USE:
    case GMD_OP_RECORD:
        status = do_on_block(s, r, &freed, error);
        break;
    default:
        status = do_elsewhere(s, r, error);
        view_refresh(s);
        journal_writer_settle(s, s->view.device);
    }
    if (status == GMD_OK && !s->is_over) {
        view_judge(s);
    }
    if (status == GMD_OK && s->features.map) {
        features_request(&s->features, &s->view);
    }
    if (status == GMD_OK && s->view.out_of_memory) {
        session_probe(s, r);
    } else if (status == GMD_OK && !s->is_over && !s->shared->outcome.violation_count) {
        free_wrongly(s, r, &freed);
    }
    return status;
}
