/* sweeps.h - memory of a device is filled and verified by kernels, in the order of a stream, and
 * what they found is read without waiting. Thread safety: sweeps_run from any thread; sweeps_next
 * by one thread at a time. */
#ifndef GMD_SWEEPS_H
#define GMD_SWEEPS_H

#include "gmd_cuda.h"
#include "gmd_error.h"
#include "sweep_task.h"

#include <stdbool.h>

typedef struct sweeps sweeps;

/* Loads the kernels: a driver compiles them once and keeps the result. GMD_BAD_INPUT: they are not
 * to be had here, and `error` says why. */
gmd_status sweeps_open(sweeps **made, int device_count, gmd_error *error);

/* Before anything else with a device, which is current: has each kernel run there once, so that
 * none is loaded while a graph is captured. No stream is being captured. */
gmd_status sweeps_prepare(sweeps *s, int device, gmd_error *error);
void sweeps_close(sweeps *s); /* no work of theirs is pending; NULL is fine */

/* Queues them on `stream` of `device`, which is current; at most SWEEP_MANY. */
cudaError_t sweeps_run(sweeps *s, int device, cudaStream_t stream, const sweep_range *ranges,
                       uint32_t count);

/* Whether anything was found that was not there the last time that this was asked. A load. */
bool sweeps_have_news(sweeps *s, int device);

/* A find that has not been read; false: none is complete. */
bool sweeps_next(sweeps *s, int device, sweep_find *find);
uint32_t sweeps_lost(const sweeps *s, int device); /* finds that there was no room for */

/* --- for tests --------------------------------------------------------------------------- */

/* Carries out the ranges in place of a device, and keeps finds where the kernels do. */
typedef cudaError_t sweep_fn(void *context, cudaStream_t stream, const sweep_range *ranges,
                             uint32_t count, sweep_finds *finds);
gmd_status sweeps_make(sweeps **made, int device_count, sweep_fn *run, void *context,
                       gmd_error *error);

#endif
