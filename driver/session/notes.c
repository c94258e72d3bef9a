#include "notes.h"

#include <inttypes.h>
#include <stdio.h>

void session_add_note(gmd_session *session, const char *format, va_list arguments)
{
    gmd_outcome *o = &session->shared->outcome;
    if (o->note_count < GMD_NOTE_MAX) {
        vsnprintf(o->notes[o->note_count++], sizeof o->notes[0], format, arguments);
    }
}

void session_note(gmd_session *session, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    session_add_note(session, format, arguments);
    va_end(arguments);
}

void session_violation(gmd_session *session, gmd_kind kind, const gmd_given_party *parties,
                       uint64_t request, const char *message)
{
    outcome_violation(&session->shared->outcome, session->options->judging.known, kind, parties,
                      request, message);
}

void session_fail(gmd_session *session, gmd_kind kind, const gmd_given_party *parties,
                  uint64_t request, const char *message)
{
    session_violation(session, kind, parties, request, message);
    session->is_over = true;
}

/* Work that touches memory which is not there ends the use of the device for the process. */
static bool is_device_lost(gmd_session *s)
{
    bool is_lost = false;
    int current = 0;
    holds_release(s->holds);
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_harness(true);
    }
    s->runtime.cudaGetDevice(&current);
    for (int device = 0; device < s->device_count && !is_lost; device++) {
        is_lost = s->runtime.cudaSetDevice(device) == cudaErrorIllegalAddress ||
                  s->runtime.cudaDeviceSynchronize() == cudaErrorIllegalAddress;
    }
    s->runtime.cudaSetDevice(current);
    return is_lost;
}

static void fail_for_lost_device(gmd_session *s)
{
    char message[400];
    snprintf(message, sizeof message,
             "work that was queued by now touched memory that is not there any more, or never was "
             "(cudaErrorIllegalAddress): the device is lost to the process; the allocator was "
             "last called in request %" PRIu64,
             s->report.last_request);
    session_fail(s, GMD_KIND(backing, device_lost), GMD_NO_PARTIES, s->request_index, message);
}

/* The simulated device refuses nothing by itself; what a capture forbids is for the driver to know,
 * and memory is the host's. */
static bool is_allocators_doing(const gmd_session *s)
{
    cudaError_t error = s->streams.refused.error;
    bool is_of_capture =
        error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
    return s->runtime.sim && s->streams.refused.call && !is_of_capture &&
           error != cudaErrorMemoryAllocation;
}

static void fail_for_refusal(gmd_session *s)
{
    char message[400];
    const refused_call *refused = &s->streams.refused;
    const char *error = s->runtime.cudaGetErrorName(refused->error);
    snprintf(message, sizeof message,
             "the device refuses a call of gmd's own, %s: %s; the allocator, which was last called "
             "in request %" PRIu64 ", took away what it needs",
             refused->call, gmd_runtime_error_text(&s->runtime, refused->error),
             s->report.last_request);
    session_fail(s, GMD_KIND(progress, device_refuses),
                 GMD_PARTIES({"call", refused->call}, {"error", error}), s->request_index, message);
}

void session_stop(gmd_session *s, gmd_status status, const gmd_error *error)
{
    gmd_error placed = *error;
    const gmd_request *r = s->view.request;
    bool is_own = status == GMD_FAILED && s->report.has_called;
    if (status == GMD_FAILED && s->shared->outcome.known_context.is_spoilt) {
        s->is_over = true; /* what follows a known defect may be its consequence */
        return;
    }
    if (is_own && is_device_lost(s)) {
        fail_for_lost_device(s);
        return;
    }
    if (is_own && is_allocators_doing(s)) {
        fail_for_refusal(s);
        return;
    }
    if (r && r->line) { /* of the file that it was read from */
        char place[600];
        snprintf(place, sizeof place, "%.500s:%u", s->workload->name, r->line);
        gmd_error_prefix(&placed, place);
    }
    outcome_error(&s->shared->outcome, status, &placed);
    s->is_over = true;
}
