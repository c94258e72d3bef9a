/* blocks.h - the blocks of a run, by their number in the trace. */
#ifndef GMD_BLOCKS_H
#define GMD_BLOCKS_H

#include "gmd_session_state.h"

/* The place of a block; NULL: no host memory. Places move when there are more of them. */
session_block *block_at(gmd_session *session, uint32_t id);
/* There will be no more than `count` blocks: their places stay where they are. False: no host
 * memory. */
bool blocks_reserve(gmd_session *session, uint32_t count);
/* Where a live block is; 0 when it is not live. */
uint64_t block_address(const gmd_session *session, uint32_t block);

#endif
