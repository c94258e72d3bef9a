/* validity.h - whether a session agrees with itself: the live blocks and their sums; the streams,
 * pools and uses that they name; captures and graphs; calls of the allocator; what the oracles are
 * shown.
 *
 * Between requests, with no thread in the allocator. As in the allocator's validity.h: a request
 * that ends checks all, each time as long as there is little, and else as often as keeps the walks
 * a constant part of the time.
 *
 * What an allocator under test answers, addresses above all, breaks none of this. Each function
 * gives the sentence that does not hold; NULL: all does. */
#ifndef GMD_SESSION_VALIDITY_H
#define GMD_SESSION_VALIDITY_H

#include "gmd_session_state.h"

const char *session_state_violation(const gmd_session *session);
const char *session_state_due_violation(gmd_session *session); /* when a check is due */

#endif
