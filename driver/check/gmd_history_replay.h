/* gmd_history_replay.h - replay without --check: a history's requests, and what became of them.
 *
 * Requests that the recorded allocator refused are the job's own and no finding. One that it served
 * and that is refused now is: where the user said how much memory there is. */
#ifndef GMD_HISTORY_REPLAY_H
#define GMD_HISTORY_REPLAY_H

#include "gmd_history.h"
#include "gmd_session.h"

typedef struct gmd_history_replay {
    const gmd_history *history;
    bool must_fit; /* a limit or capacity was given: to be refused under it is a finding */
} gmd_history_replay;

/* The body for gmd_workload: `context` is a gmd_history_replay. Goes on where requests are refused,
 * and notes how many were, the retries and the peaks. */
gmd_status gmd_replay_history(void *context, gmd_session *session, gmd_error *error);

#endif
