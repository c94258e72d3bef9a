/* exceptions.h - C++ exceptions of the allocator in a session. */
#ifndef EXCEPTIONS_H
#define EXCEPTIONS_H

#include "gmd_session_state.h"

/* Notes what ends the process, and catches what the allocator promises to throw. */
void session_watch_exceptions(gmd_session *session);

#endif
