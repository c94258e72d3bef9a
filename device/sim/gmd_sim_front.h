/* gmd_sim_front.h - the functions behind the three library fronts: each API function as
 * gmd_sim_<name>. */
#ifndef GMD_SIM_FRONT_H
#define GMD_SIM_FRONT_H

#include "gmd_cuda.h"

#define FRONT_DECLARE(result, name, parameters, arguments) result gmd_sim_##name parameters;
GMD_CUDART_FUNCTIONS(FRONT_DECLARE)
GMD_CUDART_FURTHER_FUNCTIONS(FRONT_DECLARE)
GMD_CUDART_TEXT_FUNCTIONS(FRONT_DECLARE)
GMD_CUDA_DRIVER_FUNCTIONS(FRONT_DECLARE)
#undef FRONT_DECLARE

#define FRONT_DECLARE_OWN(result, name, suffix, parameters, arguments)                             \
    result gmd_sim_##name##suffix parameters;
GMD_CUDA_DRIVER_PER_THREAD_FUNCTIONS(FRONT_DECLARE_OWN)
GMD_CUDA_DRIVER_PER_THREAD_SYNCHRONOUS(FRONT_DECLARE_OWN)
#undef FRONT_DECLARE_OWN

/* cudaMemset and cudaMemcpy on another stream than the legacy one. */
cudaError_t gmd_sim_memset_on(cudaStream_t on, void *to, int value, size_t size);
cudaError_t gmd_sim_memcpy_on(cudaStream_t on, void *to, const void *from, size_t size,
                              enum cudaMemcpyKind kind);

/* cudaRuntimeGetVersion of a front, which knows which runtime it is. */
cudaError_t gmd_sim_runtime_version(int *version, int of_library);

#endif
