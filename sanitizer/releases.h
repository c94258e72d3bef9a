/* releases.h - freed blocks leave the quarantine: they are verified, and the allocator has them
 * again. Sync: with no lock of the guard held. */
#ifndef GMD_RELEASES_H
#define GMD_RELEASES_H

#include "guard_state.h"

/* The block is gone. `is_ordered`: whoever gets its memory next on its stream comes after all that
 * used it; else the allocator waits for the recorded streams. */
void guard_give_back(guard *g, guarded_block *b, bool is_ordered);

/* The oldest ones, until no more than these are held back. */
void guard_release_beyond(guard *g, int device, uint64_t bytes, uint32_t count);
void guard_release_ready(guard *g, int device); /* blocks that wait for the next request */

/* Where there are more than the options say, an eighth of them: they are verified together. */
void guard_release_when_full(guard *g, int device);

#endif
