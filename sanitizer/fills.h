/* fills.h - the memory of new and of freed blocks is filled. Sync: with no lock of the guard held.
 */
#ifndef GMD_FILLS_H
#define GMD_FILLS_H

#include "guard_state.h"

/* A new block's zones, and what was gathered on its stream, in one launch. A block that cannot be
 * filled becomes a plain one. */
void guard_fill_allocated(guard *g, guarded_block *b);

/* A freed block is filled, at once or with others soon, and is in the quarantine then. */
void guard_hold_back(guard *g, guarded_block *b);

/* Fills what was gathered on any device. */
void guard_fill_gathered(guard *g);

#endif
