/* A stand-in for CNMeM's header: see README.md. */
#ifndef STANDIN_CNMEM_H
#define STANDIN_CNMEM_H

#include <cuda_runtime_api.h>

typedef enum { CNMEM_STATUS_SUCCESS, CNMEM_STATUS_OUT_OF_MEMORY, CNMEM_STATUS_OTHER } cnmemStatus_t;
enum { CNMEM_FLAGS_DEFAULT };
typedef struct {
    int device;
    size_t size;
    int numStreams;
    cudaStream_t *streams;
    size_t *streamSizes;
} cnmemDevice_t;

#ifdef __cplusplus
extern "C" {
#endif
cnmemStatus_t cnmemInit(int device_count, const cnmemDevice_t *devices, unsigned flags);
cnmemStatus_t cnmemRegisterStream(cudaStream_t stream);
cnmemStatus_t cnmemMalloc(void **memory, size_t bytes, cudaStream_t stream);
cnmemStatus_t cnmemFree(void *memory, cudaStream_t stream);
const char *cnmemGetErrorString(cnmemStatus_t status);
#ifdef __cplusplus
}
#endif

#endif
