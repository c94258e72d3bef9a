/* session_canaries.c - what blocks hold on a real device, for the oracles `data` and
 * `stream_order`.
 *
 * A block is filled with its mark on its own stream as soon as it is handed out. Its work verifies
 * the mark and writes it again; work that is held (hold.h) does so late, when an allocator that
 * does not wait for it may have given the memory to somebody else, whose mark is then found. A free
 * is preceded by a last verification on the block's own stream. */
#include "session_internal.h"

#include "canary.h"

#include <stdio.h>
#include <stdlib.h>

enum { REMEMBERED = 1 << 14 }; /* blocks and verifications; older ones are told by less */

typedef struct verification {
    uint64_t ticket;
    gmd_live_block block;
    uint64_t request; /* that queued it */
    uint32_t stream;
} verification;

struct gmd_canary_book {
    gmd_canaries *kernels;
    uint64_t last_mark, last_ticket;
    gmd_live_block owners[REMEMBERED];  /* by mark */
    verification verifying[REMEMBERED]; /* by ticket */
    gmd_canary_sight sight;             /* for the view */
};

gmd_status gmd_session_open_canaries(gmd_session *s, gmd_error *error)
{
    gmd_error reason = {""};
    if (s->options->oracles_off) {
        return GMD_OK;
    }
    s->canaries = calloc(1, sizeof *s->canaries);
    if (!s->canaries) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for what blocks hold");
    }
    gmd_status status =
        gmd_canaries_open(&s->canaries->kernels, &s->runtime, s->device_count, &reason);
    if (status != GMD_OK) {
        free(s->canaries);
        s->canaries = NULL;
        snprintf(s->no_canaries, sizeof s->no_canaries, "%.150s", reason.text);
        s->runtime.cudaGetLastError();
    }
    return status == GMD_NO_MEMORY ? gmd_fail(error, status, "%s", reason.text) : GMD_OK;
}

void gmd_session_close_canaries(gmd_session *s)
{
    if (s->canaries) {
        gmd_canaries_close(s->canaries->kernels);
        free(s->canaries);
        s->canaries = NULL;
    }
}

/* --- work --------------------------------------------------------------------------------- */

static gmd_status check(gmd_session *s, cudaError_t result, const gmd_live_block *b,
                        gmd_error *error)
{
    return result == cudaSuccess
               ? GMD_OK
               : gmd_fail(error, GMD_FAILED, "work on block %u could not be queued: %s", b->id,
                          gmd_runtime_error_text(&s->runtime, result));
}

static cudaError_t verify(gmd_session *s, const session_block *b, uint32_t stream_index,
                          cudaStream_t stream)
{
    gmd_canary_book *book = s->canaries;
    uint64_t ticket = ++book->last_ticket;
    book->verifying[ticket % REMEMBERED] = (verification){
        .ticket = ticket, .block = b->live, .request = s->request_index, .stream = stream_index};
    return gmd_canary_verify(book->kernels, stream, b->live.address, b->live.bytes, b->mark,
                             ticket);
}

gmd_status gmd_session_fill(gmd_session *s, session_block *b, cudaStream_t stream, gmd_error *error)
{
    int previous;
    if (!s->canaries) {
        return GMD_OK;
    }
    gmd_status status = gmd_streams_enter(&s->streams, b->live.device, &previous, error);
    if (status != GMD_OK) {
        return status;
    }
    b->mark = ++s->canaries->last_mark;
    s->canaries->owners[b->mark % REMEMBERED] = b->live;
    cudaError_t result =
        gmd_canary_fill(s->canaries->kernels, stream, b->live.address, b->live.bytes, b->mark);
    status = gmd_streams_leave(&s->streams, previous, error);
    return status == GMD_OK ? check(s, result, &b->live, error) : status;
}

/* Work on another stream than the block's comes after what its own stream has put there: that is a
 * caller's duty. It may come late, on the block's own stream too. */
gmd_status gmd_session_use_filled(gmd_session *s, const gmd_request *r, session_block *b,
                                  cudaStream_t stream, gmd_error *error)
{
    gmd_status status = GMD_OK;
    int previous;
    if (r->stream != b->live.stream) {
        status = gmd_streams_wait(&s->streams, b->live.device, r->stream, b->live.stream, s->moment,
                                  error);
    }
    if (status == GMD_OK) {
        status = gmd_streams_enter(&s->streams, b->live.device, &previous, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    cudaError_t result = gmd_hold(s->holds, b->live.device, stream, r->duration_ns);
    result = result == cudaSuccess ? verify(s, b, r->stream, stream) : result;
    if (result == cudaSuccess) {
        result =
            gmd_canary_fill(s->canaries->kernels, stream, b->live.address, b->live.bytes, b->mark);
    }
    status = gmd_streams_leave(&s->streams, previous, error);
    return status == GMD_OK ? check(s, result, &b->live, error) : status;
}

gmd_status gmd_session_verify_last(gmd_session *s, const session_block *b, cudaStream_t stream,
                                   gmd_error *error)
{
    int previous;
    if (!s->canaries || !b->mark) {
        return GMD_OK;
    }
    gmd_status status = gmd_streams_enter(&s->streams, b->live.device, &previous, error);
    if (status != GMD_OK) {
        return status;
    }
    cudaError_t result = verify(s, b, b->live.stream, stream);
    status = gmd_streams_leave(&s->streams, previous, error);
    return status == GMD_OK ? check(s, result, &b->live, error) : status;
}

/* --- what it showed ----------------------------------------------------------------------- */

void gmd_session_look_at_canaries(gmd_session *s)
{
    gmd_canary_book *book = s->canaries;
    gmd_canary_finding f;
    s->view.sight = NULL;
    if (!book || !gmd_canary_next(book->kernels, &f)) {
        return;
    }
    const verification *v = &book->verifying[f.ticket % REMEMBERED];
    bool is_remembered = v->ticket == f.ticket;
    uint64_t mark = gmd_canary_mark_of(f.found);
    const gmd_live_block *other = &book->owners[mark % REMEMBERED];
    bool is_known = is_remembered && mark && mark <= book->last_mark &&
                    mark + REMEMBERED > book->last_mark &&
                    gmd_canary_is_written_at(f.found, v->block.address + f.offset, other->address,
                                             other->bytes);
    book->sight = (gmd_canary_sight){.offset = f.offset, .found = f.found, .has_other = is_known};
    if (is_remembered) {
        book->sight.block = v->block;
        book->sight.use =
            (gmd_use){.request = v->request, .ticket = v->ticket, .stream = v->stream};
    }
    if (is_known) {
        book->sight.other = *other;
    }
    s->view.sight = &book->sight;
}

/* Work that touches memory which is not there ends the use of the device for the process. */
bool gmd_session_device_is_lost(const gmd_session *s)
{
    gmd_holds_release(s->holds);
    return !s->runtime.sim && s->runtime.cudaDeviceSynchronize() == cudaErrorIllegalAddress;
}
