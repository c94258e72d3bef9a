/* bounds.h - the figures of memory that a scenario can ask for, and the bounds that it sets on
 * them, on the first device. */
#ifndef GMD_BOUNDS_H
#define GMD_BOUNDS_H

#include "gmd_session_state.h"
#include "gmd_sink.h"

/* The allocator's own figures where it exports them, else what the live set and the device tell. */
bool session_memory(gmd_session *session, gmd_sink_memory *memory);

/* From here on the run is held to it. */
void bounds_add(gmd_session *session, const gmd_bound *bound);
/* Brings the peaks up to date. */
void bounds_follow(gmd_session *session);

#endif
