/* block_requests.h - what requests on blocks do: alloc, free, use, record. */
#ifndef GMD_BLOCK_REQUESTS_H
#define GMD_BLOCK_REQUESTS_H

#include "gmd_session_state.h"
#include "gmd_sink.h"

gmd_status block_alloc(gmd_session *session, const gmd_request *request, gmd_served *served,
                       gmd_error *error);
/* What the program owes before a live block is freed. */
gmd_status block_settle(gmd_session *session, session_block *block, gmd_error *error);
/* The allocator has freed a live block that was settled, by itself. */
gmd_status block_end(gmd_session *session, session_block *block, gmd_error *error);
/* Frees a live block as its owner would; `freed` is what it was, for the view. */
gmd_status block_free(gmd_session *session, session_block *block, gmd_live_block *freed,
                      gmd_error *error);
gmd_status block_use(gmd_session *session, const gmd_request *request, session_block *block,
                     gmd_error *error);
/* An allocator without record_stream leaves the duty with the caller: settled before the free. */
gmd_status block_record(gmd_session *session, const gmd_request *request, session_block *block,
                        gmd_error *error);

#endif
