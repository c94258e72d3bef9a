/* canaries.h - what blocks hold on a real device, for the oracles `data` and `stream_order`.
 *
 * A block is filled with its mark on its own stream as soon as it is handed out. Its work verifies
 * the mark and writes it again; work that is held (gmd_hold.h) does so late, when an allocator that
 * does not wait for it may have given the memory to somebody else, whose mark is then found. A free
 * is preceded by a last verification on the block's own stream.
 *
 * While a stream is captured all of that becomes part of the graph, and happens at each launch.
 * What the memory of a graph holds between its launches is the graph's affair: other work in blocks
 * of its pool only reads. Without kernels filling and verifying do nothing. */
#ifndef GMD_CANARIES_H
#define GMD_CANARIES_H

#include "gmd_session_state.h"

gmd_status session_open_canaries(gmd_session *session, gmd_error *error);
void session_close_canaries(gmd_session *session); /* nothing is queued any more */
gmd_status session_fill(gmd_session *session, session_block *block, cudaStream_t stream,
                        gmd_error *error);
gmd_status session_use_filled(gmd_session *session, const gmd_request *request,
                              session_block *block, cudaStream_t stream, gmd_error *error);
/* The work itself: a verification, and the mark once more. The block's device is current. */
cudaError_t session_work_filled(gmd_session *session, const session_block *block,
                                uint32_t stream_index, cudaStream_t stream);
gmd_status session_verify_last(gmd_session *session, const session_block *block,
                               cudaStream_t stream, gmd_error *error);
/* Asks the oracles about all that kernels have found by now; and begins anew at the end of a run,
 * with nothing pending. */
void session_judge_canaries(gmd_session *session);
void session_forget_canaries(gmd_session *session);

#endif
