/* pools.h - stream-ordered memory pools. */
#ifndef GMD_SIM_POOLS_H
#define GMD_SIM_POOLS_H

#include "call_record.h"
#include "point.h"

struct pool;
struct pool *pool_of(sim_call *call, cudaMemPool_t handle); /* NULL, with misuse noted: none */

/* What the runtime's and the driver's forms of the calls share. Each answers a call with its
 * status, which both APIs number alike, and notes misuse on it. */
int pool_create(sim_call *call, cudaMemPool_t *out, const struct cudaMemPoolProps *properties);
int pool_destroy(sim_call *call, cudaMemPool_t handle);
int pool_trim(sim_call *call, cudaMemPool_t handle, uint64_t keep);

/* The pool that a device's allocations come from, or began with. */
int pool_tell(sim_call *call, cudaMemPool_t *out, int device, bool is_default);
int pool_make_current(sim_call *call, int device, cudaMemPool_t handle);

/* From the current pool of the thread's device, or from a given one. */
int pool_allocate(sim_call *call, void **out, uint64_t size, cudaStream_t on);
int pool_allocate_from(sim_call *call, cudaMemPool_t from, void **out, uint64_t size,
                       cudaStream_t on);

bool pool_free(uint32_t slot, point freed_at); /* false: it is free already */

/* The handle of the pool that a block belongs to, also where it is destroyed. */
cudaMemPool_t pool_of_block(uint32_t slot);

/* The host has synchronised with some work, and has learnt of it: pools give memory back. */
void pools_synchronised(void);
uint64_t pools_hold(int device); /* bytes of the device, in use or not */

void pools_reset(void);
void pools_reset_device(int device);
const char *pools_violation(void); /* what does not hold of them; NULL: all does */

#endif
