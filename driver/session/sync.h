/* sync.h - the host waits for streams. */
#ifndef GMD_SYNC_H
#define GMD_SYNC_H

#include "gmd_session_state.h"

/* The host waits for the stream, or with GMD_ALL_STREAMS for the device, and for nothing that is
 * held elsewhere (gmd_hold.h). */
gmd_status session_sync(gmd_session *session, int device, uint32_t stream, gmd_error *error);

#endif
