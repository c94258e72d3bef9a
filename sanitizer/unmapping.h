/* unmapping.h - blocks whose mapping is taken away when they are freed. The addresses stay theirs:
 * who uses them then gets an illegal access, at the very kernel.
 *
 * Before that the device is waited for: what was queued before the free is over, so that nobody is
 * accused whose order is right. While a capture may be under way nothing can be waited for: such
 * blocks go when it is over. */
#ifndef GMD_UNMAPPING_H
#define GMD_UNMAPPING_H

#include "guard_state.h"

bool guard_maps(guard *g, size_t size); /* a block of that size, now */

/* Gives the block memory and an address. False: there is none. */
bool guard_map(guard *g, guarded_block *b);

/* The block was freed, and is not the caller's any more. */
void guard_unmap(guard *g, guarded_block *b, uint32_t stack);

/* Those that still wait, if they can go now. */
void guard_unmap_waiting(guard *g, uint32_t stack);

/* Bytes of such blocks on a device now, and at most since the peak was reset. */
uint64_t guard_mapped_bytes(guard *g, int device, uint64_t *peak, bool resets_peak);

/* Memory that no block has goes back to the device. */
void guard_release_spares(guard *g, int device);

#endif
