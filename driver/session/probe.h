/* probe.h - after a refusal: is it true? The allocator is asked again, in a child of fork where the
 * device is simulated: the device's state is memory of this process, so the child can ask what
 * would be if, and the run goes on undisturbed. On a real device it is asked in place, and only
 * what a refusal must leave without effect. */
#ifndef GMD_PROBE_ASKED_H
#define GMD_PROBE_ASKED_H

#include "gmd_session_state.h"

/* After a refusal that the oracles have seen. */
void session_probe(gmd_session *session, const gmd_request *request);

#endif
