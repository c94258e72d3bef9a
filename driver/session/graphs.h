/* graphs.h - stream captures and the graphs that they make, which work in private pools.
 *
 * What a program may do while a stream is captured is CUDA's to say: captures are global ones, so
 * that nothing may be waited for anywhere. Requests that a program cannot make then are left out.
 */
#ifndef GMD_GRAPHS_H
#define GMD_GRAPHS_H

#include "gmd_session_state.h"

bool session_capture_forbids(const gmd_session *session, const gmd_request *request);
gmd_status session_begin_capture(gmd_session *session, const gmd_request *request,
                                 cudaStream_t stream, gmd_error *error);
gmd_status session_end_capture(gmd_session *session, gmd_error *error);
/* What requests on captured streams do: work and waits become a part of the graph; the host cannot
 * wait for such a stream, and the capture fails. */
gmd_status session_capture_use(gmd_session *session, const gmd_request *request,
                               session_block *block, gmd_error *error);
gmd_status session_capture_wait(gmd_session *session, int device, uint32_t waiter, uint32_t waited,
                                gmd_error *error);
void session_capture_sync(gmd_session *session, int device, uint32_t stream);
/* Captured work in the memory of a block that was just served on a captured stream, which need not
 * run before what is captured next on that stream; NULL: none. */
const gmd_graph_access *session_capture_clash(const gmd_session *session,
                                              const gmd_live_block *block);
/* Before the free of a block of the graph: its stream waits for the others that used it unrecorded.
 */
gmd_status session_capture_settle(gmd_session *session, session_block *block, gmd_error *error);
gmd_status session_launch(gmd_session *session, const gmd_request *request, cudaStream_t stream,
                          gmd_error *error);
/* The oldest graphs of the pool, until `kept` are left; their work is waited for. */
gmd_status session_destroy_graphs(gmd_session *session, int device, uint32_t pool, uint32_t kept,
                                  gmd_error *error);

#endif
