/* pools.h - private pools: which requests go there, and for how long they are held. What the
 * allocator cannot do, or what makes no sense where it stands, is left out. */
#ifndef GMD_POOLS_H
#define GMD_POOLS_H

#include "gmd_session_state.h"

gmd_status session_on_pool(gmd_session *session, const gmd_request *request, gmd_error *error);
/* Ends the device's open pool, and begins it again. False: none is open; the allocator refused. */
bool session_leave_pool(gmd_session *session, int device);
bool session_reenter_pool(gmd_session *session, int device);
/* Requests go to no private pool any more; and nobody holds one any more. */
void session_end_pools(gmd_session *session);
void session_release_pools(gmd_session *session);

#endif
