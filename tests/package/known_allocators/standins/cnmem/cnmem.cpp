// A stand-in for CNMeM's library: see ../README.md.
#include <cnmem.h>

cnmemStatus_t cnmemInit(int device_count, const cnmemDevice_t *devices, unsigned)
{
    return device_count > 0 && devices[0].device == 0 ? CNMEM_STATUS_SUCCESS : CNMEM_STATUS_OTHER;
}

cnmemStatus_t cnmemRegisterStream(cudaStream_t stream)
{
    return stream ? CNMEM_STATUS_SUCCESS : CNMEM_STATUS_OTHER;
}

cnmemStatus_t cnmemMalloc(void **memory, size_t bytes, cudaStream_t)
{
    return cudaMalloc(memory, bytes) == cudaSuccess ? CNMEM_STATUS_SUCCESS
                                                    : CNMEM_STATUS_OUT_OF_MEMORY;
}

cnmemStatus_t cnmemFree(void *memory, cudaStream_t)
{
    return cudaFree(memory) == cudaSuccess ? CNMEM_STATUS_SUCCESS : CNMEM_STATUS_OTHER;
}

const char *cnmemGetErrorString(cnmemStatus_t)
{
    return "CNMEM_STATUS_OTHER";
}
