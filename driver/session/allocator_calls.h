/* allocator_calls.h - what the allocator asks of the device, call by call. Simulated device only.
 */
#ifndef GMD_ALLOCATOR_CALLS_H
#define GMD_ALLOCATOR_CALLS_H

#include "gmd_session_state.h"

/* From here on the allocator's calls are noted. */
void watch_allocator(gmd_session *session);

#endif
