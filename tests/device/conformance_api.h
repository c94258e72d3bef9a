/* conformance_api.h - what the parts of the program conformance_streams share: the runtime and the
 * driver as tables of functions, and the lines that a call prints. */
#ifndef CONFORMANCE_API_H
#define CONFORMANCE_API_H

#include "gmd_runtime.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MIB ((size_t)1 << 20)

/* The functions that the loader's table does not have. */
#define API_FIELD(result, name, parameters, arguments) __typeof__(&name) name;
typedef struct conformance_api {
    GMD_CUDART_FUNCTIONS(API_FIELD)
    GMD_CUDART_STREAM_FUNCTIONS(API_FIELD)
    GMD_CUDA_DRIVER_FUNCTIONS(API_FIELD)
    GMD_CUDA_DRIVER_STREAM_FUNCTIONS(API_FIELD)
    __typeof__(&cudaStreamQuery) cudaStreamQuery_ptsz;
    __typeof__(&cudaMemsetAsync) cudaMemsetAsync_ptsz;
    __typeof__(&cudaMemset) cudaMemset_ptds;
} conformance_api;
#undef API_FIELD

extern conformance_api api;
extern gmd_runtime rt;

/* A line for one call: its result, and the last error that it left. */
int show(const char *what, int result);
void tell(const char *what, int is_so);

#define SHOW(call) show(#call, (int)api.call)

/* Some milliseconds of work on any device: far more than the calls that follow take. */
extern void *large;
#define LARGE_BYTES (256 * MIB)
void keep_busy(cudaStream_t stream);

void capture_section(void);
void graph_section(void);

#endif
