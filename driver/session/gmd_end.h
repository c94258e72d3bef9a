/* gmd_end.h - the end of a run: everything is freed, and the oracles judge what is left. */
#ifndef GMD_END_H
#define GMD_END_H

#include "gmd_session_state.h"

/* The end of a run: statistics for the report, then everything is freed and the cache emptied, and
 * the oracles judge what is left. */
void session_finish(gmd_session *session);

/* After a violation whose request cannot be brought out of the allocator: the process ends, and
 * what was found counts. */
__attribute__((noreturn)) void session_end_process(gmd_session *session);
void session_close(gmd_session *session);

/* For frames_watch_waits. */
__attribute__((noreturn)) void session_end_stuck(void *context, const char *what, const char *lock);

#endif
