/* contract_duties.h - the caller's side of the contract (gmd_contract.h): requests that a program
 * which keeps to it does not make are left out, and counted. Thread safety: that of the session. */
#ifndef GMD_CONTRACT_DUTIES_H
#define GMD_CONTRACT_DUTIES_H

#include "gmd_run_options.h"
#include "gmd_trace.h"

#include <stdbool.h>

/* Whether this request is left out; if so, it is counted. */
bool session_contract_forbids(gmd_session *session, const gmd_request *request);

/* At the end: what was left out, and why. */
void session_note_left_out(gmd_session *session);

#endif
