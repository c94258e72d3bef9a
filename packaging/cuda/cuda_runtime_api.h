/* cuda_runtime_api.h for projects that are built where there is no CUDA toolkit: the calls that
 * gmd's simulated libraries have (docs/cuda-calls.md), under the name that sources include. Never
 * before a toolkit's. */
#ifndef GMD_CUDA_RUNTIME_API_H
#define GMD_CUDA_RUNTIME_API_H

#ifdef __cplusplus
extern "C" {
#endif
#include "../gmd_cuda.h"
#ifdef __cplusplus
}
#endif

#endif
