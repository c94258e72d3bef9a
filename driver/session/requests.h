/* requests.h - what each kind of request does. */
#ifndef GMD_REQUESTS_H
#define GMD_REQUESTS_H

#include "gmd_session_state.h"
#include "gmd_sink.h"

/* Does what the request says, and asks the oracles. */
gmd_status carry_out_request(gmd_session *session, const gmd_request *request, gmd_served *served,
                             gmd_error *error);

#endif
