/* checkpoints.h - private pools that are kept as they are, and brought back: checkpoint_pool and
 * restore_pool.
 *
 * A restore frees the pool's live blocks and allocates those of the checkpoint. One that is in both
 * stays what it was. One that was freed since lives again without a name that requests could use,
 * until the next restore, or the end; of one that was allocated since, later requests are left out.
 * Before a restore the program does what it owes before a free (block_settle). */
#ifndef GMD_CHECKPOINTS_H
#define GMD_CHECKPOINTS_H

#include "gmd_session_state.h"

/* Notes once in a run why not. */
bool checkpoints_are_possible(gmd_session *s);

/* The allocator may refuse either: then nothing has changed. The request was noted
 * (gmd_pool_state.h). */
gmd_status checkpoints_make(gmd_session *s, const gmd_request *r, gmd_error *error);
gmd_status checkpoints_restore(gmd_session *s, const gmd_request *r, gmd_error *error);

/* The pool is gone; all are; a stream is, and with it those that have blocks of it. */
void checkpoints_drop(gmd_session *s, int device, uint32_t pool);
void checkpoints_drop_all(gmd_session *s);
void checkpoints_forget_stream(gmd_session *s, int device, uint32_t stream);

#endif
