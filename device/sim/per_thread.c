/* The driver's functions for code that is compiled for per-thread default streams: the plain ones,
 * where the calling thread's own stream stands for no stream. */
#include "gmd_sim_front.h"

#define OWN(stream) ((stream) ? (stream) : cudaStreamPerThread)
#define FORWARD_OWN(result, name, suffix, parameters, arguments)                                   \
    result gmd_sim_##name##suffix parameters                                                       \
    {                                                                                              \
        return gmd_sim_##name arguments;                                                           \
    }

GMD_CUDA_DRIVER_PER_THREAD_FUNCTIONS(FORWARD_OWN)
