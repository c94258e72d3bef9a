#include "notes.h"

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
static bool is_device_lost(const gmd_session *s)
{
    holds_release(s->holds);
    return !s->runtime.sim && s->runtime.cudaDeviceSynchronize() == cudaErrorIllegalAddress;
}

void session_stop(gmd_session *s, gmd_status status, const gmd_error *error)
{
    gmd_error placed = *error;
    const gmd_request *r = s->view.request;
    if (status == GMD_FAILED && is_device_lost(s)) {
        session_fail(s, GMD_KIND(backing, device_lost), GMD_NO_PARTIES, s->request_index,
                     "work that was queued by now touched memory that is not there any more, or "
                     "never was (cudaErrorIllegalAddress): the device is lost to the process");
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
