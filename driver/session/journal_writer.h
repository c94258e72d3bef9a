/* journal_writer.h - how a session keeps its journal (gmd_journal.h). All of these do nothing where
 * none is kept.
 *
 * No call says when a freed block that was recorded on other streams is the allocator's again. That
 * is seen where the allocator exports statistics and gmd_walk; else it is known at the
 * latest when its memory is handed out again or goes back to the device. */
#ifndef GMD_JOURNAL_WRITER_H
#define GMD_JOURNAL_WRITER_H

#include "gmd_session_state.h"

/* Before the allocator is loaded. */
gmd_status journal_writer_open(gmd_session *s, gmd_error *error);
/* Nothing more is noted; what was pending stays so. */
void journal_writer_close(gmd_session *s);

/* A request begins, in the thread that carries it out. */
void journal_writer_begin(gmd_session *s, const gmd_request *r);
/* The allocator has taken memory of the device, or given it back. */
void journal_writer_call(gmd_session *s, const gmd_sim_call *call);
/* After a request, with the statistics read: blocks that are pending no more. */
void journal_writer_settle(gmd_session *s, int device);
void journal_writer_alloc(gmd_session *s, const gmd_request *r, uint64_t address);
void journal_writer_refusal(gmd_session *s, const gmd_request *r);
/* Before the allocator's free, and after it, with the statistics read. */
void journal_writer_free(gmd_session *s, const gmd_live_block *block);
void journal_writer_freed(gmd_session *s, const gmd_live_block *block, bool is_recorded);

/* The workload is over: what the allocator holds now is the last that is noted. */
void journal_writer_end(gmd_session *s);

#endif
