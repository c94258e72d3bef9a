/* timeline_writer.h - a session writes its timeline. */
#ifndef GMD_TIMELINE_WRITER_H
#define GMD_TIMELINE_WRITER_H

#include "gmd_session_state.h"

/* Notes the request that was just carried out in options->timeline, which is not NULL. The first
 * request of a session starts it anew. */
void timeline_note(gmd_session *session, const gmd_request *request);

#endif
