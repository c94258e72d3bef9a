#include "canaries.h"

#include "captures.h"
#include "gmd_canary.h"
#include "notes.h"
#include "sync.h"

#include <stdio.h>
#include <stdlib.h>

enum { REMEMBERED = 1 << 14 }; /* blocks and verifications; older ones are described by less */

typedef struct verification {
    uint64_t ticket;
    gmd_live_block block;
    uint64_t request; /* that queued it */
    uint32_t stream;
    bool is_captured;
} verification;

typedef struct owner { /* of a mark */
    gmd_live_block block;
    bool is_captured;
} owner;

typedef struct canary_table {
    canary_kernels *kernels;
    uint64_t last_mark, last_ticket;
    owner owners[REMEMBERED];           /* by mark */
    verification verifying[REMEMBERED]; /* by ticket */
} canary_table;

gmd_status session_open_canaries(gmd_session *s, gmd_error *error)
{
    gmd_error reason = {""};
    if (s->options->judging.oracles_off) {
        return GMD_OK;
    }
    s->canaries.table = calloc(1, sizeof *s->canaries.table);
    if (!s->canaries.table) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for what blocks hold");
    }
    gmd_status status =
        canaries_open(&s->canaries.table->kernels, &s->runtime, s->device_count, &reason);
    if (status != GMD_OK) {
        free(s->canaries.table);
        s->canaries.table = NULL;
        snprintf(s->canaries.reason, sizeof s->canaries.reason, "%.150s", reason.text);
        s->runtime.cudaGetLastError();
    }
    return status == GMD_NO_MEMORY ? gmd_fail(error, status, "%s", reason.text) : GMD_OK;
}

void session_close_canaries(gmd_session *s)
{
    if (s->canaries.table) {
        canaries_close(s->canaries.table->kernels);
        free(s->canaries.table);
        s->canaries.table = NULL;
    }
}

/* --- work --------------------------------------------------------------------------------- */

static gmd_status check(gmd_session *s, cudaError_t result, const gmd_live_block *b,
                        gmd_error *error)
{
    return result == cudaSuccess || captures_refused(&s->captures, &s->runtime, result)
               ? GMD_OK
               : gmd_fail(error, GMD_FAILED, "work on block %u could not be queued: %s", b->id,
                          gmd_runtime_error_text(&s->runtime, result));
}

/* The contents of a graph's block are followed through the graph's work only; those of any other
 * block, through work that is not captured. */
static bool is_followed_on(const gmd_session *s, const session_block *b, uint32_t stream)
{
    bool is_captured = captures_include(&s->captures, b->live.device, stream);
    return is_captured ? pool_table_is_of_graph(&s->pools, &s->captures, &b->live)
                       : !b->is_for_graph;
}

static cudaError_t verify(gmd_session *s, const session_block *b, uint32_t stream_index,
                          cudaStream_t stream)
{
    canary_table *table = s->canaries.table;
    uint64_t ticket = ++table->last_ticket;
    table->verifying[ticket % REMEMBERED] =
        (verification){.ticket = ticket,
                       .block = b->live,
                       .request = s->request_index,
                       .stream = stream_index,
                       .is_captured = captures_include(&s->captures, b->live.device, stream_index)};
    return gmd_canary_verify(table->kernels, stream, b->live.address, b->live.bytes, b->mark,
                             ticket);
}

gmd_status session_fill(gmd_session *s, session_block *b, cudaStream_t stream, gmd_error *error)
{
    int previous;
    if (!s->canaries.table || !is_followed_on(s, b, b->live.stream)) {
        return GMD_OK;
    }
    gmd_status status = streams_enter(&s->streams, b->live.device, &previous, error);
    if (status != GMD_OK) {
        return status;
    }
    b->mark = ++s->canaries.table->last_mark;
    s->canaries.table->owners[b->mark % REMEMBERED] =
        (owner){.block = b->live,
                .is_captured = captures_include(&s->captures, b->live.device, b->live.stream)};
    cudaError_t result = gmd_canary_fill(s->canaries.table->kernels, stream, b->live.address,
                                         b->live.bytes, b->mark);
    status = streams_leave(&s->streams, previous, error);
    return status == GMD_OK ? check(s, result, &b->live, error) : status;
}

cudaError_t session_work_filled(gmd_session *s, const session_block *b, uint32_t stream_index,
                                cudaStream_t stream)
{
    cudaError_t result = verify(s, b, stream_index, stream);
    return result == cudaSuccess ? gmd_canary_fill(s->canaries.table->kernels, stream,
                                                   b->live.address, b->live.bytes, b->mark)
                                 : result;
}

/* Work on another stream than the block's comes after what its own stream has put there: that is a
 * caller's duty. It may come late, on the block's own stream too. */
gmd_status session_use_filled(gmd_session *s, const gmd_request *r, session_block *b,
                              cudaStream_t stream, gmd_error *error)
{
    gmd_status status = GMD_OK;
    int previous;
    if (r->stream != b->live.stream) {
        status =
            streams_wait(&s->streams, b->live.device, r->stream, b->live.stream, s->moment, error);
    }
    if (status == GMD_OK) {
        status = streams_enter(&s->streams, b->live.device, &previous, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    cudaError_t result = hold_stream(s->holds, b->live.device, stream, r->duration_ns);
    if (result == cudaSuccess) {
        result = is_followed_on(s, b, r->stream) ? session_work_filled(s, b, r->stream, stream)
                                                 : canary_read(s->canaries.table->kernels, stream,
                                                               b->live.address, b->live.bytes);
    }
    status = streams_leave(&s->streams, previous, error);
    return status == GMD_OK ? check(s, result, &b->live, error) : status;
}

gmd_status session_verify_last(gmd_session *s, const session_block *b, cudaStream_t stream,
                               gmd_error *error)
{
    int previous;
    if (!s->canaries.table || !b->mark || !is_followed_on(s, b, b->live.stream)) {
        return GMD_OK;
    }
    gmd_status status = streams_enter(&s->streams, b->live.device, &previous, error);
    if (status != GMD_OK) {
        return status;
    }
    cudaError_t result = verify(s, b, b->live.stream, stream);
    status = streams_leave(&s->streams, previous, error);
    status = status == GMD_OK ? check(s, result, &b->live, error) : status;
    if (status == GMD_OK && b->is_orphan) { /* queued on a namesake of the block's stream */
        status = session_sync(s, b->live.device, b->live.stream, error);
    }
    return status;
}

/* --- what it showed ----------------------------------------------------------------------- */

static gmd_canary_finding finding_of(const canary_table *table, const canary_hit *f)
{
    const verification *v = &table->verifying[f->ticket % REMEMBERED];
    bool is_remembered = v->ticket == f->ticket;
    uint64_t mark = canary_mark_of(f->found);
    const owner *other = &table->owners[mark % REMEMBERED];
    bool is_known = is_remembered && mark && mark <= table->last_mark &&
                    mark + REMEMBERED > table->last_mark &&
                    canary_is_written_at(f->found, v->block.address + f->offset,
                                         other->block.address, other->block.bytes);
    gmd_canary_finding finding = {.offset = f->offset, .found = f->found, .has_other = is_known};
    if (is_remembered) {
        finding.block = v->block;
        finding.use = (gmd_use){.request = v->request, .ticket = v->ticket, .stream = v->stream};
        finding.is_captured = v->is_captured;
    }
    if (is_known) {
        finding.other = other->block;
        finding.other_is_captured = other->is_captured;
    }
    return finding;
}

/* One that is no known defect is enough: what else is found may be its consequence. */
void session_judge_canaries(gmd_session *s)
{
    canary_hit found;
    while (s->canaries.table && !s->shared->outcome.violation_count &&
           canary_next(s->canaries.table->kernels, &found)) {
        gmd_canary_finding finding = finding_of(s->canaries.table, &found);
        s->view.canaries.finding = &finding;
        judge_ask(&s->judge, GMD_HOOK_ON_CANARY_FINDING, &s->view);
        s->view.canaries.finding = NULL;
    }
}

/* The device is idle. */
void session_forget_canaries(gmd_session *s)
{
    if (!s->canaries.table) {
        return;
    }
    if (canaries_are_full(s->canaries.table->kernels)) {
        session_note(s, "kernels found more blocks with wrong contents than gmd keeps: the "
                        "first ones were judged");
    }
    canaries_forget(s->canaries.table->kernels);
}
