/* wrong_frees.h - frees that a caller must not make, made on purpose: one after each of the first
 * frees, later ever more rarely, by the number of requests, so that a run can be repeated. */
#ifndef GMD_WRONG_FREES_H
#define GMD_WRONG_FREES_H

#include "gmd_session_state.h"

/* After a free that the oracles have seen, maybe one that must not be made. */
void session_free_wrongly(gmd_session *session, const gmd_live_block *freed);

/* After a free or an emptied cache: maybe one of a block whose memory went back to the device, and
 * there to another library. Simulated device. */
void session_free_stale(gmd_session *session);

#endif
