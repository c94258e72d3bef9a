/* session.c - one request after the other, each on its thread; and what others ask of a session. */
#include "gmd_answers.h"
#include "gmd_log.h"
#include "session_internal.h"
#include "timeline.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void gmd_session_stop(gmd_session *s, gmd_status status, const gmd_error *error)
{
    gmd_error placed = *error;
    const gmd_request *r = s->view.request;
    if (status == GMD_FAILED && gmd_session_device_is_lost(s)) {
        gmd_session_fail(
            s, GMD_KIND(backing, device_lost), GMD_NO_PARTIES, s->request_index,
            "work that was queued by now touched memory that is not there any more, or "
            "never was (cudaErrorIllegalAddress): the device is lost to the process");
        return;
    }
    if (r && r->line) { /* of the file that it was read from */
        char place[600];
        snprintf(place, sizeof place, "%.500s:%u", s->workload->name, r->line);
        gmd_error_prefix(&placed, place);
    }
    gmd_outcome_error(&s->shared->outcome, status, &placed);
    s->is_over = true;
}

static void record_request(gmd_session *s, const gmd_request *r)
{
    gmd_shared *shared = s->shared;
    shared->current = *r;
    shared->current_index = s->request_index;
    if (!s->workload->trace && shared->request_count < GMD_RECORDED_REQUEST_MAX) {
        shared->requests[shared->request_count++] = *r;
    }
    atomic_fetch_add_explicit(&shared->beats, 1, memory_order_release);
    gmd_holds_beat(s->holds);
}

typedef struct errand { /* one request, for the thread that it belongs to */
    gmd_session *session;
    const gmd_request *request;
    gmd_served served;
    gmd_status status;
    gmd_error error;
} errand;

static void run_errand(void *context)
{
    errand *e = context;
    if (e->session->runtime.sim) {
        e->session->runtime.sim->gmd_sim_harness(true);
    }
    e->status = gmd_session_carry_out(e->session, e->request, &e->served, &e->error);
}

static gmd_served serve_on_its_thread(gmd_session *s, const gmd_request *r)
{
    errand e = {.session = s, .request = r, .served = GMD_SERVED};
    gmd_status called =
        gmd_threads_call(&s->threads, r->thread % GMD_MAX_THREADS, run_errand, &e, &e.error);
    gmd_status status = called != GMD_OK ? called : e.status;
    if (status != GMD_OK) {
        gmd_session_stop(s, status, &e.error);
    }
    return e.served;
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
    if (session->is_over || session->ends_here) {
        return GMD_STOP;
    }
    record_request(session, request);
    gmd_session_begin(session);
    session->view.request = request;
    session->view.request_index = session->request_index;
    atomic_store_explicit(&session->shared->is_in_request, 1, memory_order_relaxed);
    gmd_served served = serve_on_its_thread(session, request);
    if (GMD_LOG_IS_ON(SESSION)) {
        log_request(session, request, served);
    }
    atomic_store_explicit(&session->shared->is_in_request, 0, memory_order_relaxed);
    if (session->shared->answers && !session->is_over &&
        !gmd_answers_note(session->shared->answers, session, request,
                          served == GMD_OUT_OF_MEMORY)) {
        session->is_over = true; /* all that the second run was for */
    }
    if (session->options->timeline) {
        gmd_session_note_timeline(session, request);
    }
    session->request_index++;
    session->shared->outcome.requests = session->request_index;
    session->is_over = session->is_over || session->shared->outcome.violation_count > 0;
    return session->is_over || session->ends_here ? GMD_STOP : served;
}

/* --- what others ask of a session -------------------------------------------------------- */

bool gmd_session_is_repetition(const gmd_session *session)
{
    return session->options->is_second_run;
}

void gmd_session_place(gmd_session *session, const char *file, int line)
{
    gmd_shared *shared = session->shared;
    snprintf(shared->place, sizeof shared->place, "%s:%d: ", file, line);
}

bool gmd_session_memory(gmd_session *session, gmd_sink_memory *memory)
{
    const gmd_stats *stats = &session->stats[0];
    if (session->has_stats) {
        *memory = (gmd_sink_memory){stats->allocated_bytes, stats->allocated_bytes_peak,
                                    stats->reserved_bytes, stats->reserved_bytes_peak,
                                    stats->active_bytes};
        return true;
    }
    *memory = (gmd_sink_memory){.allocated = session->live_bytes[0],
                                .max_allocated = session->peak_allocated,
                                .active = GMD_STAT_UNKNOWN};
    if (session->runtime.sim) {
        memory->reserved = session->figures[0].physical_bytes;
        memory->max_reserved = session->peak_reserved;
    }
    return true;
}

void gmd_session_phase(gmd_session *session, const char *label)
{
    gmd_outcome *o = &session->shared->outcome;
    if (o->phase_count == GMD_PHASE_MAX) {
        o->phases_dropped++;
        return;
    }
    gmd_sink_memory memory;
    gmd_session_memory(session, &memory);
    gmd_phase *phase = &o->phases[o->phase_count++];
    snprintf(phase->label, sizeof phase->label, "%s", label);
    phase->allocated = memory.allocated;
    phase->max_allocated = memory.max_allocated;
    phase->reserved = memory.reserved;
    phase->max_reserved = memory.max_reserved;
}

bool gmd_session_reset_peaks(gmd_session *session, int device)
{
    if (!session->subject.reset_peak_stats) {
        if (!session->has_stats) { /* peaks are then ours */
            session->peak_allocated = session->live_bytes[0];
            session->peak_reserved = session->figures[0].physical_bytes;
        }
        return false;
    }
    session->subject.reset_peak_stats(device);
    session->view.request = NULL; /* the latest one is its maker's, and may be gone */
    gmd_session_look_at(session, device);
    gmd_session_refresh(session);
    gmd_judge_ask(&session->judge, GMD_HOOK_AFTER_PEAK_RESET, &session->view);
    return true;
}

uint64_t gmd_session_address(const gmd_session *session, uint32_t block)
{
    return block < session->block_capacity ? session->blocks[block].live.address : 0;
}

const gmd_device_call *gmd_session_device_calls(const gmd_session *session, size_t *count)
{
    *count = session->call_count;
    return session->calls;
}

uint64_t gmd_session_api_calls(const gmd_session *session)
{
    return session->api_calls;
}

const gmd_subject *gmd_session_subject(const gmd_session *session)
{
    return &session->subject;
}

const gmd_runtime *gmd_session_runtime(const gmd_session *session)
{
    return &session->runtime;
}

gmd_outcome *gmd_session_outcome(gmd_session *session)
{
    return &session->shared->outcome;
}

void gmd_session_fail(gmd_session *session, gmd_kind kind, const gmd_given_party *parties,
                      uint64_t request, const char *message)
{
    gmd_outcome_violation(&session->shared->outcome, session->options->known, kind, parties,
                          request, message);
    session->is_over = true;
}

uint64_t gmd_session_last_refused(const gmd_session *session)
{
    return session->last_refused;
}

void gmd_session_note(gmd_session *session, const char *format, ...)
{
    gmd_outcome *o = &session->shared->outcome;
    if (o->note_count < GMD_NOTE_MAX) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(o->notes[o->note_count++], sizeof o->notes[0], format, arguments);
        va_end(arguments);
    }
}
