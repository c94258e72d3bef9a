/* gmd_restart.h - the same process for one input after the other: what an input leaves that is no
 * defect is taken back. */
#ifndef GMD_RESTART_H
#define GMD_RESTART_H

#include "gmd_session_state.h"

/* After a run that ended cleanly, as before its first request. */
gmd_status session_restart(gmd_session *session, gmd_error *error);
/* What is left of a run; its judge is closed. */
void session_forget(gmd_session *session);

#endif
