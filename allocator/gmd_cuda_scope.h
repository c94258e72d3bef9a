/* gmd_cuda_scope.h - calls of CUDA on behalf of a request: on the block's device whatever device is
 * current, allowed although another stream is being captured, and with no error left behind.
 * Afterwards the thread's device and capture mode are what they were. */
#ifndef GMD_CUDA_SCOPE_H
#define GMD_CUDA_SCOPE_H

#include "gmd_cuda.h"

#include <stdbool.h>

typedef struct cuda_scope {
    int device, previous;
    enum cudaStreamCaptureMode mode; /* to go back to */
    bool has_mode;
} cuda_scope;

/* False: the runtime refuses the device; nothing is changed, and the scope is not to be left. */
bool cuda_scope_enter(cuda_scope *scope, int device);
void cuda_scope_leave(const cuda_scope *scope);

/* True when it is cudaSuccess; else the thread's last error is cleared: a failure is dealt with by
 * who asks, and none is left for the caller to find. */
bool cuda_succeeded(cudaError_t result);

/* A function of the driver in the form of that CUDA version, found through the runtime, so that no
 * other library is needed. NULL: the driver has none. */
void *cuda_driver_function(const char *name, unsigned version);

/* Whether work on the stream is being captured into a graph, or could disturb a capture: the legacy
 * default stream does not even tell while another stream is captured. */
bool cuda_is_capturing(cudaStream_t stream);

#endif
