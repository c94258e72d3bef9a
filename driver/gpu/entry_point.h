/* entry_point.h - functions of the CUDA driver API, found through the runtime that is loaded: gmd
 * links neither.
 *
 * https://docs.nvidia.com/cuda/cuda-runtime-api, "Driver Entry Point Access". */
#ifndef GMD_ENTRY_POINT_H
#define GMD_ENTRY_POINT_H

#include "gmd_error.h"
#include "gmd_runtime.h"

#include <stdbool.h>

/* Puts the address of the function, in the form that it has in CUDA 12.0, into the pointer to a
 * function at `to`. GMD_BAD_INPUT: there is none, and `error` says why. */
gmd_status find_entry_point(const gmd_runtime *runtime, const char *name, void *to,
                            gmd_error *error);

/* A driver function gave `result`. True: the thread had no context, which the runtime has made
 * current now, and the call is worth another try. */
bool entry_point_may_retry(const gmd_runtime *runtime, int result);

#endif
