/* libcudart.so.13 and libcudart.so.12: names only; the runtime is in libgmd_sim.so. */
#include "front.h"

#define FORWARD(result, name, parameters, arguments)                                               \
    result name parameters                                                                         \
    {                                                                                              \
        return gmd_sim_##name arguments;                                                           \
    }

/* The one function that tells the two libraries apart. */
#define gmd_sim_cudaRuntimeGetVersion(version) gmd_sim_runtime_version(version, FRONT_VERSION)

GMD_CUDART_FUNCTIONS(FORWARD)
GMD_CUDART_FURTHER_FUNCTIONS(FORWARD)
GMD_CUDART_TEXT_FUNCTIONS(FORWARD)
