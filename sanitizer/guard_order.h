/* guard_order.h - a guard told by happens-before as well: which work on other streams may use a
 * block, seen in the program's launches, copies, events and waits (order.h, launches.h). All
 * functions do nothing where that is off or cannot be had. With no lock of the guard held. */
#ifndef GMD_GUARD_ORDER_H
#define GMD_GUARD_ORDER_H

#include "guard_state.h"

/* From now on launches are watched. Where they cannot be (another tool has CUPTI), a line on
 * standard error says why, and nothing is watched. */
void guard_order_start(guard *g);
void guard_order_mute(guard *g); /* nothing is told any more */
void guard_order_stop(guard *g); /* after that, and when all blocks are dropped */

void guard_order_allocated(guard *g, guarded_block *b); /* before anybody can find it */
void guard_order_recorded(guard *g, struct order_block *block, cudaStream_t stream);
void guard_order_freed(guard *g, guarded_block *b);
void guard_order_dropped(guard *g, guarded_block *b); /* when nobody can find it any more */

/* Work that is about to be queued on `stream` uses the block in which the address lies, for
 * certain; `what` is kept as it is. */
void guard_order_used(guard *g, uint64_t address, const char *what, cudaStream_t stream);

#endif
