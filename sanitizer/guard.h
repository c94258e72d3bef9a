/* guard.h - the sanitizer itself: blocks of an allocator get red zones; freed ones are filled, held
 * back and verified before the allocator has them again (docs/sanitizer.md).
 *
 * Thread safety: every function from any thread, except create and destroy. The allocator's
 * functions are called with no lock held. */
#ifndef GMD_GUARD_H
#define GMD_GUARD_H

#include "guard_types.h"

/* `s` and `report` become the guard's. `options` and `allocator` are copied. */
gmd_status guard_create(guard **made, const sanitizer_options *options,
                        const guard_allocator *allocator, sweeps *s, int device_count,
                        gmd_error *error);
void guard_destroy(guard *g); /* no work of it is pending; NULL is fine */

/* NULL: the allocator refused; or a finding is to be raised, and `error` says which; or the device
 * does not take the sanitizer's kernels, likewise. */
void *guard_malloc(guard *g, size_t size, int device, cudaStream_t stream, gmd_error *error);
void guard_free(guard *g, void *ptr);
void guard_record_stream(guard *g, void *ptr, cudaStream_t stream);
uint64_t guard_block_size(guard *g, const void *ptr); /* as it was asked for; 0: no live block */

/* Requests go to one private pool more (1), or less (-1): they get no mappings of their own, and
 * captures may be under way. */
void guard_pools_changed(guard *g, int change);

/* All that is held back goes to the allocator. */
void guard_release_all(guard *g);

/* Makes a check (checks.h), prints a summary, and gives the number of findings. Blocks that are
 * freed from now on go straight to the allocator, and new ones have no zones. */
uint64_t guard_finish(guard *g);

#endif
