/* view.h - what the oracles get to see: the statistics, the device's figures and calls. */
#ifndef GMD_VIEW_H
#define GMD_VIEW_H

#include "gmd_session_state.h"

/* What the allocator, or its user, promises: a set of gmd_promise. */
unsigned session_promises(const gmd_session *session);

/* The device before the allocator is loaded, and the view before the first request.
 */
void view_untouched(gmd_session *session);
void view_open(gmd_session *session);
/* Then: the oracles that can see what they need. */
gmd_status view_open_judge(gmd_session *session, gmd_error *error);
/* Nothing has happened yet in the request. */
void view_begin(gmd_session *session);
/* Makes `device` the one that the oracles look at, with its statistics from before the request. */
void view_device(gmd_session *session, int device);
/* Reads again what the request may have changed. */
void view_refresh(gmd_session *session);
/* What the limit and the device leave, as last read; GMD_STAT_UNKNOWN on a real device. */
uint64_t view_room(const gmd_session *session, int device);
/* Asks the oracles about the request that was carried out, or about the end. */
void view_judge(gmd_session *session);

#endif
