/* pool_sources.h - the memory that a trace's program has for private pools of its own (begin_pool
 * with +own_memory): asked for by the allocator within its calls, and by it given back. It is the
 * device's own, so that every oracle sees it as it sees what the allocator asks for. */
#ifndef GMD_POOL_SOURCES_H
#define GMD_POOL_SOURCES_H

#include "gmd_session_state.h"

/* What the allocator gets for a pool that was just made; its `allocate` is NULL: no host memory. It
 * stays valid until the allocator says that the pool is gone, after the session, too. */
gmd_pool_memory pool_sources_open(gmd_session *session, int device, uint32_t serial);

/* The run of the session is over: what comes is not about it. */
void pool_sources_forget(void);

/* What the allocator has done with such memory that it must not, since this was asked last, or with
 * the block that was just handed out (NULL: none was): into the view. */
void pool_sources_show(gmd_session *session, const gmd_live_block *handed_out);

#endif
