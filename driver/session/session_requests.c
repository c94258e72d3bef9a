/* session_requests.c - what each kind of request does. */
#include "journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static session_block *block_at(gmd_session *s, uint32_t id)
{
    if (id >= s->block_capacity) {
        uint32_t capacity = s->block_capacity ? s->block_capacity : 1024;
        while (capacity <= id) {
            capacity *= 2;
        }
        session_block *blocks = realloc(s->blocks, capacity * sizeof *blocks);
        if (!blocks) {
            return NULL;
        }
        memset(blocks + s->block_capacity, 0, (capacity - s->block_capacity) * sizeof *blocks);
        s->blocks = blocks;
        s->block_capacity = capacity;
    }
    s->block_end = id >= s->block_end ? id + 1 : s->block_end;
    return &s->blocks[id];
}

bool gmd_session_reserve_blocks(gmd_session *s, uint32_t count)
{
    return count == 0 || block_at(s, count - 1) != NULL;
}

static void check_expectation(gmd_session *s, const gmd_request *r, bool is_served)
{
    if ((r->expect == GMD_EXPECT_OOM && is_served) ||
        (r->expect == GMD_EXPECT_ALLOC && !is_served)) {
        char message[200];
        snprintf(message, sizeof message, "%" PRIu64 " B were expected to be %s and were %s",
                 r->bytes, is_served ? "refused" : "served", is_served ? "served" : "refused");
        gmd_outcome_violation(&s->shared->outcome, s->options->known,
                              is_served ? GMD_KIND(expect, served) : GMD_KIND(expect, refused),
                              GMD_NO_PARTIES, s->request_index, message);
    }
}

static gmd_status do_alloc(gmd_session *s, const gmd_request *r, gmd_served *served,
                           gmd_error *error)
{
    cudaStream_t stream = NULL;
    gmd_status status = gmd_streams_get(&s->streams, r->device, r->stream, &stream, error);
    session_block *b = block_at(s, r->block);
    if (status != GMD_OK || !b) {
        return b ? status : gmd_fail(error, GMD_NO_MEMORY, "no host memory for block %u", r->block);
    }
    uint32_t pool = gmd_session_pool_of(s, r->device, stream);
    gmd_call_frame frame;
    gmd_session_give_floor(s, &frame);
    void *memory = s->subject.malloc((size_t)r->bytes, r->device, stream);
    gmd_session_take_floor(s, &frame);
    *served = memory || r->bytes == 0 ? GMD_SERVED : GMD_OUT_OF_MEMORY;
    s->view.out_of_memory = *served == GMD_OUT_OF_MEMORY;
    if (s->view.out_of_memory) {
        s->last_refused = s->request_index;
        gmd_session_enter_alone(s);
        s->view.device_request = s->subject.device_request
                                     ? s->subject.device_request((size_t)r->bytes)
                                     : GMD_STAT_UNKNOWN;
        gmd_self_deadlock_leave();
    }
    check_expectation(s, r, *served == GMD_SERVED);
    if (!memory) {
        gmd_session_refresh(s);
        s->view.room = gmd_session_room(s, r->device);
        if (s->view.out_of_memory) {
            gmd_book_refusal(s, r);
        }
        return GMD_OK;
    }
    *b = (session_block){.live = {.address = (uint64_t)(uintptr_t)memory,
                                  .bytes = r->bytes,
                                  .born = s->request_index,
                                  .id = r->block,
                                  .stream = r->stream,
                                  .device = r->device,
                                  .pool = pool},
                         .is_for_graph = gmd_session_has_graphs(s, r->device, pool)};
    s->live_count[r->device]++;
    s->live_bytes[r->device] += r->bytes;
    if (r->device == 0 && s->live_bytes[0] > s->peak_allocated) {
        s->peak_allocated = s->live_bytes[0];
    }
    s->view.block = &b->live;
    s->view.clash = s->is_capturing ? gmd_session_capture_clash(s, &b->live) : NULL;
    gmd_session_refresh(s);
    gmd_book_alloc(s, r, b->live.address);
    if (!s->is_over) {
        gmd_judge_ask(&s->judge, GMD_HOOK_AFTER_ALLOC, &s->view);
    }
    gmd_session_mark(s, b, stream);
    return gmd_session_fill(s, b, stream, error);
}

gmd_status gmd_session_sync(gmd_session *s, int device, uint32_t stream, gmd_error *error)
{
    cudaStream_t handle;
    if (stream == GMD_ALL_STREAMS) {
        gmd_holds_release_device(s->holds, device);
    } else if (gmd_streams_find(&s->streams, device, stream, &handle)) {
        gmd_holds_release_stream(s->holds, device, handle);
    }
    gmd_status status = gmd_streams_sync(&s->streams, device, stream, s->moment, error);
    gmd_holds_beat(s->holds);
    return status;
}

/* The host waits for all work on a block that the allocator was not told of. A stream that was made
 * later under the name of the block's own is another one, which the allocator does not know. */
static gmd_status wait_for_uses(gmd_session *s, const session_block *b, gmd_error *error)
{
    uint64_t streams = b->uses.streams;
    gmd_status status = gmd_session_sync(s, b->live.device, b->live.stream, error);
    for (uint64_t left = streams; left && status == GMD_OK; left &= left - 1) {
        uint32_t user = (uint32_t)__builtin_ctzll(left);
        status = gmd_session_sync(s, b->live.device, user, error);
    }
    return status;
}

gmd_status gmd_session_free_block(gmd_session *s, session_block *b, gmd_live_block *freed,
                                  gmd_error *error)
{
    cudaStream_t stream = NULL;
    gmd_status status =
        gmd_streams_get(&s->streams, b->live.device, b->live.stream, &stream, error);
    if (status == GMD_OK && b->is_orphan) {
        status = wait_for_uses(s, b, error);
    } else if (status == GMD_OK && b->uses.streams &&
               gmd_session_is_captured(s, b->live.device, b->live.stream)) {
        status = gmd_session_capture_settle(s, b, error);
    } else if (status == GMD_OK && b->uses.streams) {
        status = gmd_streams_settle(&s->streams, &b->uses, b->live.device, b->live.stream,
                                    s->moment, error);
    }
    if (status == GMD_OK) {
        status = gmd_session_verify_last(s, b, stream, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    if (!gmd_uses_take(&s->uses, &b->last_uses, &s->view.uses, &s->view.use_count)) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the uses of block %u",
                        b->live.id);
    }
    *freed = b->live;
    s->view.block = freed;
    s->view.recorded_count = (uint32_t)__builtin_popcountll(b->uses.recorded);
    s->view.recorded_streams = b->uses.recorded;
    gmd_judge_ask(&s->judge, GMD_HOOK_BEFORE_FREE, &s->view);
    b->live.address = 0;
    s->live_count[freed->device]--;
    s->live_bytes[freed->device] -= freed->bytes;
    gmd_book_free(s, freed);
    gmd_call_frame frame;
    gmd_session_give_floor(s, &frame);
    s->subject.free((void *)(uintptr_t)freed->address, (size_t)freed->bytes, freed->device, stream);
    gmd_session_take_floor(s, &frame);
    gmd_session_refresh(s);
    gmd_book_freed(s, freed, s->view.recorded_count > 0);
    return GMD_OK;
}

/* Work that reads and writes the whole block. On a real device it is a memset. On another stream
 * than the block's, where an allocator has to wait for it, it is held for its duration. */
static cudaError_t queue_work(gmd_session *s, const session_block *block, cudaStream_t stream,
                              bool is_elsewhere, uint64_t duration_ns)
{
    const gmd_live_block *b = &block->live;
    if (s->runtime.sim && block->mark) {
        return s->runtime.sim->gmd_sim_launch_marking(stream, duration_ns, b->address, b->bytes,
                                                      block->mark);
    }
    if (s->runtime.sim) {
        gmd_sim_access access = {b->address, b->bytes, true};
        return s->runtime.sim->gmd_sim_launch(stream, duration_ns, &access, 1);
    }
    cudaError_t held =
        is_elsewhere ? gmd_hold(s->holds, b->device, stream, duration_ns) : cudaSuccess;
    return held != cudaSuccess ? held
                               : s->runtime.cudaMemsetAsync((void *)(uintptr_t)b->address, 0xa5,
                                                            (size_t)b->bytes, stream);
}

/* Remembers the work just queued as the latest use of the block on that stream. */
static gmd_status note_use(gmd_session *s, const gmd_request *r, session_block *b,
                           cudaStream_t stream, gmd_error *error)
{
    gmd_sim_point point;
    if (s->runtime.sim && s->runtime.sim->gmd_sim_point_of(b->live.device, stream, &point) == 0 &&
        !gmd_uses_note(&s->uses, &b->last_uses,
                       &(gmd_use){.request = s->request_index,
                                  .ticket = point.ticket,
                                  .place = point.stream,
                                  .stream = r->stream})) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the uses of block %u", r->block);
    }
    return gmd_streams_note_use(&s->streams, &b->uses, b->live.device, b->live.stream, r->stream,
                                s->moment, error);
}

static gmd_status do_use(gmd_session *s, const gmd_request *r, session_block *b, gmd_error *error)
{
    if (gmd_session_is_captured(s, b->live.device, r->stream)) {
        return gmd_session_capture_use(s, r, b, error);
    }
    cudaStream_t stream = NULL;
    int previous;
    gmd_status status = gmd_streams_get(&s->streams, b->live.device, r->stream, &stream, error);
    s->has_used = true;
    if (status == GMD_OK && s->canaries) {
        status = gmd_session_use_filled(s, r, b, stream, error);
        return status == GMD_OK ? note_use(s, r, b, stream, error) : status;
    }
    if (status == GMD_OK) {
        status = gmd_streams_enter(&s->streams, b->live.device, &previous, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    cudaError_t result = queue_work(s, b, stream, r->stream != b->live.stream, r->duration_ns);
    status = gmd_streams_leave(&s->streams, previous, error);
    if (result != cudaSuccess) {
        return gmd_fail(error, GMD_FAILED, "work on block %u could not be queued: %s", r->block,
                        gmd_runtime_error_text(&s->runtime, result));
    }
    return status != GMD_OK ? status : note_use(s, r, b, stream, error);
}

/* An allocator without record_stream leaves the duty with the caller: settled before the free. */
static gmd_status do_record(gmd_session *s, const gmd_request *r, session_block *b,
                            gmd_error *error)
{
    cudaStream_t stream = NULL;
    gmd_status status = gmd_streams_get(&s->streams, b->live.device, r->stream, &stream, error);
    if (status == GMD_OK && s->subject.record_stream) {
        gmd_call_frame frame;
        gmd_session_give_floor(s, &frame);
        s->subject.record_stream((void *)(uintptr_t)b->live.address, stream);
        gmd_session_take_floor(s, &frame);
        if (r->stream < GMD_TRACKED_STREAMS) {
            b->uses.recorded |= (uint64_t)1 << r->stream;
            b->uses.streams &= ~b->uses.recorded;
        }
    }
    return status;
}

static gmd_status do_fault(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    if (!s->runtime.sim) {
        return gmd_fail(error, GMD_BAD_INPUT, "fault: needs the simulated device");
    }
    const gmd_trace *t = s->workload->trace;
    const char *function =
        t && r->function < t->functions.count ? t->functions.items[r->function] : "";
    gmd_scene *scene = &s->shared->outcome.scene;
    if (scene->fault_count < sizeof scene->faults / sizeof *scene->faults) {
        snprintf(scene->faults[scene->fault_count++], sizeof *scene->faults, "%s", function);
    }
    return gmd_fault_plant(&s->faults, &s->runtime, r, function, s->request_index, error);
}

/* Where a fault hit, the allocator may have kept its earlier limit. */
/* A trace's fraction is one of the capacity that the trace states: a real device has another. */
static double fraction_here(const gmd_session *s, const gmd_request *r)
{
    const gmd_trace *t = s->workload->trace;
    uint64_t total = s->total_bytes[r->device];
    if (s->runtime.sim || !t || !t->capacity_bytes || t->capacity_bytes >= total) {
        return r->fraction;
    }
    return gmd_fraction_for((uint64_t)(r->fraction * (double)t->capacity_bytes), total);
}

static void do_fraction(gmd_session *s, const gmd_request *r)
{
    if (!s->subject.set_memory_fraction) {
        return;
    }
    double fraction = fraction_here(s, r);
    gmd_call_frame frame;
    gmd_session_give_floor(s, &frame);
    s->subject.set_memory_fraction(fraction, r->device);
    gmd_session_take_floor(s, &frame);
    s->limit_is_unknown[r->device] = s->view.faults_hit > 0;
    s->limit_bytes[r->device] =
        s->view.faults_hit ? UINT64_MAX : (uint64_t)(fraction * (double)s->total_bytes[r->device]);
    s->view.limit_bytes = s->limit_bytes[r->device];
}

/* Work on a destroyed stream can no longer be ordered before a free: a block that is live on it, or
 * used there with nobody told, is waited for first. */
static bool is_stream_in_use(const gmd_session *s, const gmd_request *r)
{
    for (uint32_t i = 0; i < s->block_end; i++) {
        const session_block *b = &s->blocks[i];
        if (b->live.address && b->live.device == r->device &&
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
    gmd_call_frame frame;
    if (s->subject.forget_stream && r->stream &&
        gmd_streams_find(&s->streams, r->device, r->stream, &handle)) {
        gmd_session_give_floor(s, &frame);
        s->subject.forget_stream(r->device, handle);
        gmd_session_take_floor(s, &frame);
    }
}

/* A stream that is made later under the same name is another one: nobody told of its work. */
static void forget_stream(gmd_session *s, const gmd_request *r)
{
    uint64_t others = r->stream < GMD_TRACKED_STREAMS ? ~((uint64_t)1 << r->stream) : UINT64_MAX;
    for (uint32_t i = 0; i < s->block_end; i++) {
        session_block *b = &s->blocks[i];
        if (b->live.address && b->live.device == r->device) {
            b->uses.recorded &= others;
            b->uses.streams &= others; /* the host has waited for it */
            b->is_orphan = b->is_orphan || b->live.stream == r->stream;
        }
    }
}

static gmd_status do_destroy(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    tell_of_destroy(s, r);
    gmd_status status = GMD_OK;
    bool may_run_graphs = s->canaries && s->captures.count; /* a later one comes after them */
    if (is_stream_in_use(s, r) || may_run_graphs) {
        status = gmd_session_sync(s, r->device, r->stream, error);
    }
    if (status == GMD_OK) {
        status = gmd_streams_destroy(&s->streams, r->device, r->stream, error);
        forget_stream(s, r);
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
    s->budget_bytes[r->device] = r->bytes;
    return GMD_OK;
}

static gmd_status do_on_block(gmd_session *s, const gmd_request *r, gmd_live_block *freed,
                              gmd_error *error)
{
    session_block *b = block_at(s, r->block);
    if (!b || !b->live.address) {
        return b ? GMD_OK : gmd_fail(error, GMD_NO_MEMORY, "no host memory for block %u", r->block);
    }
    gmd_session_look_at(s, b->live.device);
    if (r->op == GMD_OP_FREE) {
        return gmd_session_free_block(s, b, freed, error);
    }
    gmd_status status = r->op == GMD_OP_USE ? do_use(s, r, b, error) : do_record(s, r, b, error);
    if (s->interleaving) { /* it changes no figure, but others have, or are about to */
        gmd_session_refresh(s);
    }
    return status;
}

static gmd_status do_elsewhere(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    switch (r->op) {
    case GMD_OP_WAIT:
        if (gmd_session_is_captured(s, r->device, r->other_stream)) {
            return gmd_session_capture_wait(s, r->device, r->stream, r->other_stream, error);
        }
        return gmd_streams_wait(&s->streams, r->device, r->stream, r->other_stream, s->moment,
                                error);
    case GMD_OP_SYNC:
        if (gmd_session_is_captured(s, r->device, r->stream)) {
            gmd_session_capture_sync(s, r->device, r->stream);
            return GMD_OK;
        }
        return gmd_session_sync(s, r->device, r->stream, error);
    case GMD_OP_ADVANCE:
        if (s->runtime.sim) {
            s->runtime.sim->gmd_sim_advance(r->duration_ns);
        }
        gmd_holds_advance(s->holds, r->duration_ns);
        return GMD_OK;
    case GMD_OP_EMPTY_CACHE:
        if (s->subject.empty_cache) {
            gmd_call_frame frame;
            gmd_session_give_floor(s, &frame);
            s->subject.empty_cache();
            gmd_session_take_floor(s, &frame);
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
        s->shared->outcome.scene.has_destroyed = true;
        return do_destroy(s, r, error);
    case GMD_OP_BUDGET:
        return do_budget(s, r, error);
    case GMD_OP_BEGIN_POOL:
    case GMD_OP_END_POOL:
    case GMD_OP_BEGIN_CAPTURE:
    case GMD_OP_END_CAPTURE:
    case GMD_OP_LAUNCH:
    case GMD_OP_RELEASE_POOL:
        return gmd_session_on_pool(s, r, error);
    default:
        return gmd_fail(error, GMD_FAILED, "request %" PRIu64 ": unknown operation %d",
                        s->request_index, r->op);
    }
}

gmd_status gmd_session_carry_out(gmd_session *s, const gmd_request *r, gmd_served *served,
                                 gmd_error *error)
{
    if (r->device >= s->device_count) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "request %" PRIu64 " is for device %d, and there are %d (the first is 0)",
                        s->request_index, r->device, s->device_count);
    }
    if (s->is_capturing && gmd_session_capture_forbids(s, r)) {
        return GMD_OK;
    }
    gmd_live_block freed;
    s->moment++;
    s->shared->outcome.scene.has_second_device |= r->device > 0;
    gmd_book_begin(s, r);
    gmd_session_look_at(s, r->device);
    gmd_status status;
    switch (r->op) {
    case GMD_OP_ALLOC:
        status = do_alloc(s, r, served, error);
        break;
    case GMD_OP_FREE:
    case GMD_OP_USE:
    case GMD_OP_RECORD:
        status = do_on_block(s, r, &freed, error);
        break;
    default:
        status = do_elsewhere(s, r, error);
        gmd_session_refresh(s);
        gmd_book_settle(s, s->view.device);
    }
    if (status == GMD_OK && !s->is_over) {
        gmd_session_judge(s);
    }
    if (status == GMD_OK && s->features.map) {
        gmd_features_request(&s->features, &s->view);
    }
    if (status == GMD_OK && s->view.out_of_memory) {
        gmd_session_probe(s, r);
    } else if (status == GMD_OK && r->op == GMD_OP_FREE && s->view.block && !s->is_over &&
               !s->shared->outcome.violation_count) {
        gmd_session_misuse(s, &freed);
    }
    return status;
}
