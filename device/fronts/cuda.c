/* libcuda.so.1: names only; the driver is in libgmd_sim.so. */
#include "front.h"

#define FORWARD(result, name, parameters, arguments)                                               \
    result name parameters                                                                         \
    {                                                                                              \
        return gmd_sim_##name arguments;                                                           \
    }

GMD_CUDA_DRIVER_FUNCTIONS(FORWARD)
