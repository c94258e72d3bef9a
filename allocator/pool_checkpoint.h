/* pool_checkpoint.h - the state of a private pool, kept, and brought back: its segments as they
 * were split, and which of the blocks were allocated.
 *
 * A graph that is replayed works in blocks which the allocator has as free by then. Who captures
 * another graph after it has the pool brought back to the state at the end of the first one's
 * capture (torch._inductor.cudagraph_trees). What is done for that is what torch 2.11 does
 * (getCheckpointState and setCheckpointPoolState in c10/cuda/CUDACachingAllocator.cpp), so that
 * figures and histories agree: all blocks of the pool are freed, all of the checkpoint handed out,
 * and those that were free in it freed again. */
#ifndef GMD_POOL_CHECKPOINT_H
#define GMD_POOL_CHECKPOINT_H

#include "device_allocator.h"
#include "gmd_error.h"

/* GMD_FAILED: there is no such pool, or a freed block of it waits for other streams. The caller has
 * exclusive access to the device, here and below. gmd_checkpoint_destroy frees what is made. */
gmd_status pool_checkpoint_make(device_allocator *d, const uint64_t id[2], gmd_checkpoint **made,
                                gmd_error *error);

/* Any device, and any time: NULL is fine. */
void pool_checkpoint_destroy(gmd_checkpoint *c);

/* `tell` gets each block that was allocated, freed now, and then each that is allocated from now
 * on. GMD_FAILED: a segment has gone or is another one's by now, a block was recorded on other
 * streams or waits for them; the message says which, and nothing is changed. */
gmd_status pool_checkpoint_restore(device_allocator *d, const gmd_checkpoint *c,
                                   gmd_restored_fn *tell, void *context, gmd_error *error);

#endif
