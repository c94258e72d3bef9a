/* pools.h - what the runtime's and the driver's forms of the calls on stream-ordered pools share.
 *
 * Each answers a call with its status, which both APIs number alike, and notes misuse on it. */
#ifndef GMD_SIM_POOLS_H
#define GMD_SIM_POOLS_H

#include "state.h"

struct pool;
struct pool *pool_of(sim_call *call, cudaMemPool_t handle); /* NULL, with misuse noted: none */

int pool_create(sim_call *call, cudaMemPool_t *out, const struct cudaMemPoolProps *properties);
int pool_destroy(sim_call *call, cudaMemPool_t handle);
int pool_trim(sim_call *call, cudaMemPool_t handle, uint64_t keep);

/* The pool that a device's allocations come from, or began with. */
int pool_tell(sim_call *call, cudaMemPool_t *out, int device, bool is_default);
int pool_make_current(sim_call *call, int device, cudaMemPool_t handle);

int pool_allocate_from(sim_call *call, cudaMemPool_t from, void **out, uint64_t size,
                       cudaStream_t on);

/* The handle of the pool that a block belongs to, also where it is destroyed. */
cudaMemPool_t pool_of_block(uint32_t slot);

int pool_get_attribute(sim_call *call, cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                       void *value);
int pool_set_attribute(sim_call *call, cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                       const void *value);
int pool_set_access(sim_call *call, cudaMemPool_t handle, const struct cudaMemAccessDesc *access,
                    size_t count);
int pool_get_access(sim_call *call, cudaMemPool_t handle, enum cudaMemAccessFlags *flags,
                    const struct cudaMemLocation *location);

#endif
