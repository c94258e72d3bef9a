/* What can be set of a stream-ordered pool and asked about it: its attributes, and whose memory it
 * is. */
#include "pool_settings.h"

#include "calls.h"
#include "pool_memory.h"
#include "pools.h"
#include "state.h"

/* --- attributes -------------------------------------------------------------------------- */

static bool *switch_of(pool *p, enum cudaMemPoolAttr attribute)
{
    switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
        return &p->follows_events;
    case cudaMemPoolReuseAllowOpportunistic:
        return &p->is_opportunistic;
    case cudaMemPoolReuseAllowInternalDependencies:
        return &p->adds_dependencies;
    default:
        return NULL;
    }
}

static uint64_t *figure_of(pool *p, enum cudaMemPoolAttr attribute)
{
    switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
        return &p->threshold;
    case cudaMemPoolAttrReservedMemCurrent:
        return &p->reserved;
    case cudaMemPoolAttrReservedMemHigh:
        return &p->reserved_high;
    case cudaMemPoolAttrUsedMemCurrent:
        return &p->used;
    case cudaMemPoolAttrUsedMemHigh:
        return &p->used_high;
    default:
        return NULL;
    }
}

int pool_get_attribute(sim_call *call, cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                       void *value)
{
    pool *p = value ? pool_of(call, handle) : NULL;
    const bool *is_on = p ? switch_of(p, attribute) : NULL;
    const uint64_t *figure = p ? figure_of(p, attribute) : NULL;
    if (is_on) {
        *(int *)value = *is_on;
    } else if (figure) {
        *(uint64_t *)value = *figure;
    } else {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no such pool or attribute, or no place for its value");
    }
    return cudaSuccess;
}

/* The two peaks can be reset, to 0 only, and then start from the current value. */
int pool_set_attribute(sim_call *call, cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                       const void *value)
{
    pool *p = value ? pool_of(call, handle) : NULL;
    bool *is_on = p ? switch_of(p, attribute) : NULL;
    if (is_on) {
        *is_on = *(const int *)value != 0;
        return cudaSuccess;
    }
    bool is_peak =
        attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh;
    if (p && attribute == cudaMemPoolAttrReleaseThreshold) {
        p->threshold = *(const uint64_t *)value;
    } else if (p && is_peak && *(const uint64_t *)value == 0) {
        *figure_of(p, attribute) = attribute == cudaMemPoolAttrUsedMemHigh ? p->used : p->reserved;
    } else {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no such pool, or an attribute that cannot be set to this");
    }
    return cudaSuccess;
}

SIM_CALL(cudaMemPoolGetAttribute,
         (cudaMemPool_t handle, enum cudaMemPoolAttr attribute, void *value),
         pool_get_attribute(&call, handle, attribute, value))
SIM_CALL(cudaMemPoolSetAttribute,
         (cudaMemPool_t handle, enum cudaMemPoolAttr attribute, void *value),
         pool_set_attribute(&call, handle, attribute, value))

/* Without links between devices a pool's memory is its own device's, which keeps its access. */
static int give_access(sim_call *call, const pool *p, const struct cudaMemAccessDesc *access)
{
    bool is_own =
        access->location.type == cudaMemLocationTypeDevice && access->location.id == p->device;
    if (is_own && access->flags == cudaMemAccessFlagsProtReadWrite) {
        return cudaSuccess;
    }
    bool is_none = is_own && access->flags == cudaMemAccessFlagsProtNone;
    return call_misuse(call, is_none || !is_own ? cudaErrorInvalidDevice : cudaErrorNotSupported,
                       "a pool's memory is its own device's, to read and write");
}

int pool_set_access(sim_call *call, cudaMemPool_t handle, const struct cudaMemAccessDesc *access,
                    size_t count)
{
    const pool *p = pool_of(call, handle);
    if (!p || (!access && count)) {
        return call_misuse(call, cudaErrorInvalidValue, "no such pool, or no access is given");
    }
    int result = cudaSuccess;
    for (size_t i = 0; !result && i < count; i++) {
        result = give_access(call, p, &access[i]);
    }
    return result;
}

int pool_get_access(sim_call *call, cudaMemPool_t handle, enum cudaMemAccessFlags *flags,
                    const struct cudaMemLocation *location)
{
    const pool *p = pool_of(call, handle);
    if (!p || !flags || !location || location->type != cudaMemLocationTypeDevice ||
        !device_exists(location->id)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no such pool, or the question is incomplete");
    }
    *flags =
        location->id == p->device ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
    return cudaSuccess;
}

SIM_CALL(cudaMemPoolSetAccess,
         (cudaMemPool_t handle, const struct cudaMemAccessDesc *access, size_t count),
         pool_set_access(&call, handle, access, count))
SIM_CALL(cudaMemPoolGetAccess,
         (enum cudaMemAccessFlags * flags, cudaMemPool_t handle, struct cudaMemLocation *location),
         pool_get_access(&call, handle, flags, location))
