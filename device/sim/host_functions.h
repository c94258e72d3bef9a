/* host_functions.h - host functions that queued work runs: without the lock, so that other threads
 * may make calls meanwhile. */
#ifndef GMD_SIM_HOST_FUNCTIONS_H
#define GMD_SIM_HOST_FUNCTIONS_H

#include "gmd_cuda.h"

#include <stdbool.h>

/* `callback`, where it is not NULL, is called instead of `function`. */
void sim_run_host(cudaHostFn_t function, cudaStreamCallback_t callback, cudaStream_t on,
                  void *data);
void sim_wait_for_host(void); /* until a host function that runs in another thread has ended */
bool sim_is_in_host_function(void); /* the calling thread: few CUDA calls are allowed there */

#endif
