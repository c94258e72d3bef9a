/* libcuda.so.1: names only; the driver is in libgmd_sim.so. */
#include "gmd_sim_front.h"

#define FORWARD(result, name, parameters, arguments)                                               \
    result name parameters                                                                         \
    {                                                                                              \
        return gmd_sim_##name arguments;                                                           \
    }

GMD_CUDA_DRIVER_FUNCTIONS(FORWARD)

/* --- for code compiled with --default-stream per-thread ---------------------------------- */

#define FORWARD_OWN(result, name, suffix, parameters, arguments)                                   \
    result name##suffix parameters;                                                                \
    result name##suffix parameters                                                                 \
    {                                                                                              \
        return gmd_sim_##name##suffix arguments;                                                   \
    }
#define OWN(stream) (stream) /* gmd_sim's own form knows */

GMD_CUDA_DRIVER_PER_THREAD_FUNCTIONS(FORWARD_OWN)
GMD_CUDA_DRIVER_PER_THREAD_SYNCHRONOUS(FORWARD_OWN)
