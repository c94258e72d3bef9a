/* contents.h - what is written to blocks and read from them, for the oracle `data`.
 *
 * The work of a block that is followed leaves the block's mark in every byte of it. Where nothing
 * is pending on its stream, the mark is there as soon as the block is handed out: whoever had the
 * memory before is done with it then, or `stream_order` has something to say. All of the first
 * blocks are followed, and later a stretch of them now and then, by the number of allocations: two
 * that are live together over the same memory are best found when both are. Simulated device
 * only. */
#ifndef GMD_CONTENTS_H
#define GMD_CONTENTS_H

#include "gmd_session_state.h"

/* A block that was served: are its contents followed? */
void session_mark(gmd_session *session, session_block *block, cudaStream_t stream);
/* For gmd_view.read_contents. */
bool session_read_contents(const void *session, const gmd_live_block *block,
                           gmd_contents *contents);

#endif
