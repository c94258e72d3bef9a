/* notes.h - what a session has to say: notes for the reader, verdicts, and why it stops. */
#ifndef GMD_NOTES_H
#define GMD_NOTES_H

#include "gmd_session_state.h"

#include <stdarg.h>

/* Adds a note for the reader of the report. */
__attribute__((format(printf, 2, 3))) void session_note(gmd_session *session, const char *format,
                                                        ...);
void session_add_note(gmd_session *session, const char *format, va_list arguments);

/* A violation that no oracle's hook tells, in the name of one. */
void session_violation(gmd_session *session, gmd_kind kind, const gmd_given_party *parties,
                       uint64_t request, const char *message);

/* Likewise, and the run ends with it. */
void session_fail(gmd_session *session, gmd_kind kind, const gmd_given_party *parties,
                  uint64_t request, const char *message);

/* The run cannot go on; the error is placed in the trace's file. */
void session_stop(gmd_session *session, gmd_status status, const gmd_error *error);

#endif
