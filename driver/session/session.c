/* session.c - one request after the other, each on its thread; and what others ask of a session. */
#include "gmd_session.h"

#include "blocks.h"
#include "bounds.h"
#include "gmd_answers.h"
#include "gmd_assert.h"
#include "gmd_log.h"
#include "gmd_session_state.h"
#include "notes.h"
#include "requests.h"
#include "timeline_writer.h"
#include "validity.h"
#include "view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void record_request(gmd_session *s, const gmd_request *r)
{
    shared_run *shared = s->shared;
    shared->current = *r;
    shared->current_index = s->request_index;
    if (!s->workload->trace && shared->request_count < GMD_RECORDED_REQUEST_MAX) {
        shared->requests[shared->request_count++] = *r;
    }
    atomic_fetch_add_explicit(&shared->beats, 1, memory_order_release);
    holds_beat(s->holds);
}

typedef struct call { /* one request, for the thread that it belongs to */
    gmd_session *session;
    const gmd_request *request;
    gmd_served served;
    gmd_status status;
    gmd_error error;
} call;

static void run_call(void *context)
{
    call *c = context;
    if (c->session->runtime.sim) {
        c->session->runtime.sim->gmd_sim_harness(true);
    }
    c->status = carry_out_request(c->session, c->request, &c->served, &c->error);
}

static gmd_served serve_on_its_thread(gmd_session *s, const gmd_request *r)
{
    call c = {.session = s, .request = r, .served = GMD_SERVED};
    gmd_status called =
        threads_call(&s->threads, r->thread % GMD_MAX_THREADS, run_call, &c, &c.error);
    gmd_status status = called != GMD_OK ? called : c.status;
    if (status != GMD_OK) {
        session_stop(s, status, &c.error);
    }
    return c.served;
}

static void log_request(const gmd_session *s, const gmd_request *r, gmd_served served)
{
    static const gmd_trace nameless;
    char text[200];
    const gmd_trace *trace = s->workload->trace;
    gmd_request_text(trace ? trace : &nameless, r, text, sizeof text);
    GMD_LOG(SESSION, "request %" PRIu64 ": %s: %s", s->request_index, text,
            s->is_over                    ? "the run is over"
            : served == GMD_OUT_OF_MEMORY ? "out of memory"
                                          : "served");
}

gmd_served gmd_session_request(gmd_session *session, const gmd_request *request)
{
    if (session->is_over || session->persistent.ends_here) {
        return GMD_STOP;
    }
    record_request(session, request);
    view_begin(session);
    session->view.request = request;
    session->view.request_index = session->request_index;
    atomic_store_explicit(&session->shared->is_in_request, 1, memory_order_relaxed);
    gmd_served served = serve_on_its_thread(session, request);
    if (GMD_LOG_IS_ON(SESSION)) {
        log_request(session, request, served);
    }
    atomic_store_explicit(&session->shared->is_in_request, 0, memory_order_relaxed);
    run_answers *answers = session->options->process.answers;
    if (answers && !session->is_over &&
        !answers_note(answers, session, request, served == GMD_OUT_OF_MEMORY)) {
        session->is_over = true; /* all that the second run was for */
    }
    if (session->options->recording.timeline) {
        timeline_note(session, request);
    }
    session->request_index++;
    session->shared->outcome.requests = session->request_index;
    session->is_over = session->is_over || session->shared->outcome.violation_count > 0;
    GMD_ASSERT_VALID(session_state_due_violation(session));
    return session->is_over || session->persistent.ends_here ? GMD_STOP : served;
}

/* --- what others ask of a session -------------------------------------------------------- */

bool gmd_session_is_repetition(const gmd_session *session)
{
    return session->options->process.is_second_run;
}

void gmd_session_place(gmd_session *session, const char *file, int line)
{
    char place[sizeof session->shared->place];
    int length = snprintf(place, sizeof place, "%s:%d: ", file, line);
    size_t size = length < (int)sizeof place ? (size_t)length + 1 : sizeof place;
    /* Not printed in place, which begins with an empty text: the process may be killed then. */
    memcpy(session->shared->place, place, size);
}

void gmd_session_phase(gmd_session *session, const char *label)
{
    gmd_outcome *o = &session->shared->outcome;
    if (o->phase_count == GMD_PHASE_MAX) {
        o->phases_dropped++;
        return;
    }
    gmd_sink_memory memory;
    session_memory(session, &memory);
    gmd_phase *phase = &o->phases[o->phase_count++];
    snprintf(phase->label, sizeof phase->label, "%s", label);
    phase->allocated = memory.allocated;
    phase->max_allocated = memory.max_allocated;
    phase->reserved = memory.reserved;
    phase->max_reserved = memory.max_reserved;
    phase->peak_less = o->workspaces.peak_less;
    phase->peak_more = o->workspaces.peak_more;
    phase->reserved_less = gmd_workspace_reserved_error(o->workspaces.one_less);
    phase->reserved_more = gmd_workspace_reserved_error(o->workspaces.one_more);
}

bool gmd_session_reset_peaks(gmd_session *session, int device)
{
    if (!session->subject.reset_peak_stats) {
        if (!session->figures.has_stats) { /* peaks are then ours */
            live_blocks_restart_peak(&session->blocks);
            figures_restart_peak(&session->figures);
        }
        return false;
    }
    session->subject.reset_peak_stats(device);
    session->view.request = NULL; /* the latest one is its maker's, and may be gone */
    view_device(session, device);
    view_refresh(session);
    judge_ask(&session->judge, GMD_HOOK_AFTER_PEAK_RESET, &session->view);
    return true;
}

const gmd_device_call *session_device_calls(const gmd_session *session, size_t *count)
{
    *count = session->calls.count;
    return session->calls.list;
}

uint64_t gmd_session_api_calls(const gmd_session *session)
{
    return session->calls.api_calls;
}

const gmd_subject *gmd_session_subject(const gmd_session *session)
{
    return &session->subject;
}

const gmd_runtime *gmd_session_runtime(const gmd_session *session)
{
    return &session->runtime;
}

gmd_outcome *session_outcome(gmd_session *session)
{
    return &session->shared->outcome;
}

void gmd_session_fail(gmd_session *session, gmd_kind kind, const gmd_given_party *parties,
                      uint64_t request, const char *message)
{
    session_fail(session, kind, parties, request, message);
}

uint64_t gmd_session_last_refused(const gmd_session *session)
{
    return session->refusals.last;
}

uint64_t session_address(const gmd_session *session, uint32_t block)
{
    return live_blocks_address(&session->blocks, block);
}

bool gmd_session_memory(gmd_session *session, gmd_sink_memory *memory)
{
    return session_memory(session, memory);
}

void gmd_session_bound(gmd_session *session, const gmd_bound *bound)
{
    bounds_add(session, bound);
}

void gmd_session_workspaces(gmd_session *session, const gmd_workspace_use *use)
{
    session_outcome(session)->workspaces = *use;
}

void gmd_session_note(gmd_session *session, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    session_add_note(session, format, arguments);
    va_end(arguments);
}
