#include "block_requests.h"

#include "blocks.h"
#include "canaries.h"
#include "captures.h"
#include "contents.h"
#include "frames.h"
#include "gmd_size.h"
#include "graphs.h"
#include "journal_writer.h"
#include "notes.h"
#include "sync.h"
#include "view.h"

#include <inttypes.h>
#include <stdio.h>

static void check_expectation(gmd_session *s, const gmd_request *r, bool is_served)
{
    if ((r->expect == GMD_EXPECT_OOM && is_served) ||
        (r->expect == GMD_EXPECT_ALLOC && !is_served)) {
        char message[200], bytes[24];
        snprintf(message, sizeof message, "%s were expected to be %s and were %s",
                 gmd_format_bytes(r->bytes, bytes), is_served ? "refused" : "served",
                 is_served ? "served" : "refused");
        session_violation(s, is_served ? GMD_KIND(expect, served) : GMD_KIND(expect, refused),
                          GMD_NO_PARTIES, s->request_index, message);
    }
}

gmd_status block_alloc(gmd_session *s, const gmd_request *r, gmd_served *served, gmd_error *error)
{
    cudaStream_t stream = NULL;
    gmd_status status = streams_get(&s->streams, r->device, r->stream, &stream, error);
    session_block *b = live_blocks_at(&s->blocks, r->block);
    if (status != GMD_OK || !b) {
        return b ? status : gmd_fail(error, GMD_NO_MEMORY, "no host memory for block %u", r->block);
    }
    uint32_t pool = pool_table_of(&s->pools, r->device, stream);
    s->view.pools.serial = pool;
    call_frame frame;
    enter_allocator(s, "gmd_malloc", &frame);
    void *memory = s->subject.malloc((size_t)r->bytes, r->device, stream);
    leave_allocator(s, &frame);
    *served = memory || r->bytes == 0 ? GMD_SERVED : GMD_OUT_OF_MEMORY;
    s->view.out_of_memory = *served == GMD_OUT_OF_MEMORY;
    if (s->view.out_of_memory) {
        s->refusals.last = s->request_index;
    }
    if (s->view.out_of_memory || s->pools.has_options) {
        enter_for_question(s, "gmd_device_request");
        s->view.limits.device_request = s->subject.device_request
                                            ? s->subject.device_request((size_t)r->bytes)
                                            : GMD_STAT_UNKNOWN;
        leave_question();
    }
    check_expectation(s, r, *served == GMD_SERVED);
    if (!memory) {
        view_refresh(s);
        s->view.limits.room = view_room(s, r->device);
        if (s->view.out_of_memory) {
            journal_writer_refusal(s, r);
        }
        return GMD_OK;
    }
    const session_block served_block = {.live = {.address = (uint64_t)(uintptr_t)memory,
                                                 .bytes = r->bytes,
                                                 .born = s->request_index,
                                                 .id = r->block,
                                                 .stream = r->stream,
                                                 .device = r->device,
                                                 .pool = pool},
                                        .is_for_graph =
                                            captures_have_graphs(&s->captures, r->device, pool)};
    live_blocks_add(&s->blocks, b, &served_block);
    s->view.block = &b->live;
    s->view.pools.clash = s->captures.is_under_way ? session_capture_clash(s, &b->live) : NULL;
    view_refresh(s);
    if (s->pools.has_options) {
        s->view.limits.room = view_room(s, r->device);
    }
    journal_writer_alloc(s, r, b->live.address);
    if (!s->is_over) {
        judge_ask(&s->judge, GMD_HOOK_AFTER_ALLOC, &s->view);
    }
    session_mark(s, b, stream);
    return session_fill(s, b, stream, error);
}

/* The host waits for all work on a block that was not recorded with the allocator. A stream that
 * was made later under the name of the block's own is another one, which the allocator does not
 * know. */
static gmd_status wait_for_uses(gmd_session *s, const session_block *b, gmd_error *error)
{
    uint64_t streams = b->uses.streams;
    gmd_status status = session_sync(s, b->live.device, b->live.stream, error);
    for (uint64_t left = streams; left && status == GMD_OK; left &= left - 1) {
        uint32_t user = (uint32_t)__builtin_ctzll(left);
        status = session_sync(s, b->live.device, user, error);
    }
    return status;
}

gmd_status block_settle(gmd_session *s, session_block *b, gmd_error *error)
{
    cudaStream_t stream = NULL;
    gmd_status status = streams_get(&s->streams, b->live.device, b->live.stream, &stream, error);
    if (status == GMD_OK && b->is_orphan) {
        status = wait_for_uses(s, b, error);
    } else if (status == GMD_OK && b->uses.streams &&
               captures_include(&s->captures, b->live.device, b->live.stream)) {
        status = session_capture_settle(s, b, error);
    } else if (status == GMD_OK && b->uses.streams) {
        status =
            streams_settle(&s->streams, &b->uses, b->live.device, b->live.stream, s->moment, error);
    }
    return status == GMD_OK ? session_verify_last(s, b, stream, error) : status;
}

/* Its last uses are shown to the oracles, and it is live no more. */
static gmd_status judge_free(gmd_session *s, session_block *b, gmd_live_block *freed,
                             gmd_error *error)
{
    if (!uses_take(&s->uses, &b->last_uses, &s->view.uses.list, &s->view.uses.count)) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the uses of block %u",
                        b->live.id);
    }
    if (b->was_used || b->uses.recorded || b->uses.recorded_beyond) {
        streams_note_free(&s->streams, &b->uses, b->live.device, b->live.stream, s->moment);
    }
    *freed = b->live;
    s->view.block = freed;
    s->view.uses.recorded_count =
        (uint32_t)__builtin_popcountll(b->uses.recorded) + b->uses.recorded_beyond;
    s->view.uses.recorded = b->uses.recorded;
    judge_ask(&s->judge, GMD_HOOK_BEFORE_FREE, &s->view);
    live_blocks_remove(&s->blocks, b);
    journal_writer_free(s, freed);
    return GMD_OK;
}

gmd_status block_end(gmd_session *s, session_block *b, gmd_error *error)
{
    gmd_live_block freed;
    gmd_status status = judge_free(s, b, &freed, error);
    if (status == GMD_OK) {
        view_refresh(s);
        journal_writer_freed(s, &freed, s->view.uses.recorded_count > 0);
        s->view.block = NULL;
    }
    return status;
}

gmd_status block_free(gmd_session *s, session_block *b, gmd_live_block *freed, gmd_error *error)
{
    cudaStream_t stream = NULL;
    gmd_status status = block_settle(s, b, error);
    status = status == GMD_OK
                 ? streams_get(&s->streams, b->live.device, b->live.stream, &stream, error)
                 : status;
    status = status == GMD_OK ? judge_free(s, b, freed, error) : status;
    if (status != GMD_OK) {
        return status;
    }
    call_frame frame;
    enter_allocator(s, "gmd_free", &frame);
    s->subject.free((void *)(uintptr_t)freed->address, (size_t)freed->bytes, freed->device, stream);
    leave_allocator(s, &frame);
    view_refresh(s);
    journal_writer_freed(s, freed, s->view.uses.recorded_count > 0);
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
    if (s->runtime.sim) { /* a block of 0 B owns no byte, wherever it is */
        gmd_sim_access access = {b->address, b->bytes, true};
        return s->runtime.sim->gmd_sim_launch(stream, duration_ns, &access, b->bytes ? 1 : 0);
    }
    cudaError_t held =
        is_elsewhere ? hold_stream(s->holds, b->device, stream, duration_ns) : cudaSuccess;
    return held != cudaSuccess ? held
                               : s->runtime.cudaMemsetAsync((void *)(uintptr_t)b->address, 0xa5,
                                                            (size_t)b->bytes, stream);
}

/* Remembers the work just queued as the latest use of the block on that stream. */
static gmd_status note_use(gmd_session *s, const gmd_request *r, session_block *b,
                           cudaStream_t stream, gmd_error *error)
{
    gmd_sim_point point;
    b->was_used = true;
    if (s->runtime.sim && s->runtime.sim->gmd_sim_point_of(b->live.device, stream, &point) == 0 &&
        !uses_note(&s->uses, &b->last_uses,
                   &(gmd_use){.request = s->request_index,
                              .ticket = point.ticket,
                              .place = point.stream,
                              .stream = r->stream})) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the uses of block %u", r->block);
    }
    return streams_note_use(&s->streams, &b->uses, b->live.device, b->live.stream, r->stream,
                            s->moment, error);
}

gmd_status block_use(gmd_session *s, const gmd_request *r, session_block *b, gmd_error *error)
{
    if (captures_include(&s->captures, b->live.device, r->stream)) {
        return session_capture_use(s, r, b, error);
    }
    cudaStream_t stream = NULL;
    int previous;
    gmd_status status = streams_get(&s->streams, b->live.device, r->stream, &stream, error);
    s->has_used = true;
    if (status == GMD_OK && s->canaries.table) {
        status = session_use_filled(s, r, b, stream, error);
        return status == GMD_OK ? note_use(s, r, b, stream, error) : status;
    }
    if (status == GMD_OK) {
        status = streams_enter(&s->streams, b->live.device, &previous, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    cudaError_t result = queue_work(s, b, stream, r->stream != b->live.stream, r->duration_ns);
    status = streams_leave(&s->streams, previous, error);
    if (result != cudaSuccess) {
        streams_note_refusal(&s->streams, result, "work");
        return gmd_fail(error, GMD_FAILED, "work on block %u could not be queued: %s", r->block,
                        gmd_runtime_error_text(&s->runtime, result));
    }
    return status != GMD_OK ? status : note_use(s, r, b, stream, error);
}

gmd_status block_record(gmd_session *s, const gmd_request *r, session_block *b, gmd_error *error)
{
    cudaStream_t stream = NULL;
    gmd_status status = streams_get(&s->streams, b->live.device, r->stream, &stream, error);
    if (status == GMD_OK && s->subject.record_stream) {
        call_frame frame;
        enter_allocator(s, "gmd_record_stream", &frame);
        s->subject.record_stream((void *)(uintptr_t)b->live.address, stream);
        leave_allocator(s, &frame);
        streams_note_record(&s->streams, &b->uses, b->live.device, r->stream);
    }
    return status;
}
