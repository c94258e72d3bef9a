/* pool_settings.h - what can be set of a stream-ordered pool and asked about it, for the runtime's
 * and the driver's forms of the calls, each of which is answered with its status. */
#ifndef GMD_SIM_POOL_SETTINGS_H
#define GMD_SIM_POOL_SETTINGS_H

#include "call_record.h"

int pool_get_attribute(sim_call *call, cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                       void *value);
int pool_set_attribute(sim_call *call, cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                       const void *value);
int pool_set_access(sim_call *call, cudaMemPool_t handle, const struct cudaMemAccessDesc *access,
                    size_t count);
int pool_get_access(sim_call *call, cudaMemPool_t handle, enum cudaMemAccessFlags *flags,
                    const struct cudaMemLocation *location);

#endif
