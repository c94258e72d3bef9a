/* A CUDA runtime that is not gmd's: it has every function that gmd asks for, and none does
 * anything. It sees as many devices as FOREIGN_DEVICES says. */
#include "gmd_cuda.h"

#define NOTHING(result, name, parameters, arguments)                                               \
    result name parameters                                                                         \
    {                                                                                              \
        return (result)0;                                                                          \
    }
#define cudaGetDeviceCount foreign_device_count /* the list's is another one */
cudaError_t foreign_device_count(int *count);
/* NOLINTNEXTLINE(misc-unused-parameters) */
GMD_CUDART_FUNCTIONS(NOTHING)
#undef cudaGetDeviceCount

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = FOREIGN_DEVICES;
    return FOREIGN_DEVICES ? cudaSuccess : cudaErrorNoDevice;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorNoDevice ? "cudaErrorNoDevice" : "cudaSuccess";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "no error";
}
