/* The driver's forms of the calls on stream-ordered pools. They take devices and pools by number,
 * so that only what touches memory needs a current context. */
#include "calls.h"
#include "contexts.h"
#include "pool_settings.h"
#include "pools.h"

#include <string.h>

/* The two APIs declare the same structures under different names. */
_Static_assert(sizeof(CUmemPoolProps) == sizeof(struct cudaMemPoolProps), "one layout");
_Static_assert(sizeof(CUmemAccessDesc) == sizeof(struct cudaMemAccessDesc), "one layout");
_Static_assert(sizeof(CUmemLocation) == sizeof(struct cudaMemLocation), "one layout");

/* A driver function that needs cuInit only. */
#define POOL_CALL(name, parameters, ...)                                                           \
    CUresult gmd_sim_##name parameters                                                             \
    {                                                                                              \
        sim_call call;                                                                             \
        if (call_enter(&call, CALL_##name)) {                                                      \
            int refused = driver_check(&call, 0);                                                  \
            call.record.result = refused ? refused : (int)(__VA_ARGS__);                           \
        }                                                                                          \
        return (CUresult)call_leave(&call);                                                        \
    }

static int create(sim_call *call, CUmemoryPool *out, const CUmemPoolProps *properties)
{
    struct cudaMemPoolProps same;
    if (properties) {
        memcpy(&same, properties, sizeof same);
    }
    return pool_create(call, out, properties ? &same : NULL);
}

static int set_access(sim_call *call, CUmemoryPool pool, const CUmemAccessDesc *access,
                      size_t count)
{
    int result = pool_set_access(call, pool, NULL, access ? 0 : count);
    for (size_t i = 0; !result && access && i < count; i++) {
        struct cudaMemAccessDesc same;
        memcpy(&same, &access[i], sizeof same);
        result = pool_set_access(call, pool, &same, 1);
    }
    return result;
}

static int get_access(sim_call *call, CUmemAccess_flags *flags, CUmemoryPool pool,
                      const CUmemLocation *location)
{
    struct cudaMemLocation same;
    enum cudaMemAccessFlags found = cudaMemAccessFlagsProtNone;
    if (location) {
        memcpy(&same, location, sizeof same);
    }
    int result = pool_get_access(call, pool, flags ? &found : NULL, location ? &same : NULL);
    if (flags && !result) {
        *flags = (CUmemAccess_flags)found;
    }
    return result;
}

/* Unlike the other calls that name a device, this one takes a wrong number for a wrong value. */
static int tell_current(sim_call *call, CUmemoryPool *pool, CUdevice device)
{
    int result = pool_tell(call, pool, device, false);
    return result == CUDA_ERROR_INVALID_DEVICE ? (int)CUDA_ERROR_INVALID_VALUE : result;
}

static int allocate(sim_call *call, CUdeviceptr *pointer, size_t size, CUmemoryPool from,
                    CUstream on)
{
    void *memory = NULL;
    int result = pool_allocate_from(call, from, pointer ? &memory : NULL, size, on);
    if (pointer && !result) {
        *pointer = (uintptr_t)memory;
    }
    return result;
}

POOL_CALL(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device),
          pool_tell(&call, pool, device, true))
POOL_CALL(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device),
          tell_current(&call, pool, device))
POOL_CALL(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool),
          pool_make_current(&call, device, pool))
POOL_CALL(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *properties),
          create(&call, pool, properties))
POOL_CALL(cuMemPoolDestroy, (CUmemoryPool pool), pool_destroy(&call, pool))
POOL_CALL(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep), pool_trim(&call, pool, keep))
POOL_CALL(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute which, void *value),
          pool_get_attribute(&call, pool, (enum cudaMemPoolAttr)which, value))
POOL_CALL(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute which, void *value),
          pool_set_attribute(&call, pool, (enum cudaMemPoolAttr)which, value))
POOL_CALL(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *access, size_t count),
          set_access(&call, pool, access, count))
POOL_CALL(cuMemPoolGetAccess,
          (CUmemAccess_flags * flags, CUmemoryPool pool, CUmemLocation *location),
          get_access(&call, flags, pool, location))

SIM_DRIVER_CALL(cuMemAllocFromPoolAsync,
                (CUdeviceptr * pointer, size_t size, CUmemoryPool pool, CUstream on),
                allocate(&call, pointer, size, pool, on))
