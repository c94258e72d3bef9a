/* Stream-ordered memory pools: this device has none, as cudaDevAttrMemoryPoolsSupported tells. */
#include "state.h"

#define REFUSE(name, parameters)                                                                   \
    cudaError_t gmd_sim_##name parameters                                                          \
    {                                                                                              \
        sim_call call;                                                                             \
        if (call_enter(&call, CALL_##name)) {                                                      \
            call.record.result = cudaErrorNotSupported;                                            \
        }                                                                                          \
        return (cudaError_t)call_leave(&call);                                                     \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"

REFUSE(cudaMallocAsync, (void **pointer, size_t size, cudaStream_t handle))
REFUSE(cudaFreeAsync, (void *pointer, cudaStream_t handle))
REFUSE(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device))
REFUSE(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value))
REFUSE(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value))
REFUSE(cudaMemPoolSetAccess,
       (cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t count))
REFUSE(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep_bytes))
