#include "gmd_fault_error.h"

#include <string.h>

/* Calls that need memory, of the device or the host, fail for want of it: in both APIs error 2.
 * (cudaMemGetInfo needs a context, whose memory it may be that is not there.) */
static const char *const memory_calls[] = {
    "cudaMalloc",    "cudaHostAlloc",  "cudaEventCreate",     "cudaStreamCreate",  "cuMemCreate",
    "cuMemMap",      "cuMemSetAccess", "cuMemAddressReserve", "cudaMemPoolCreate", "cuMemAlloc",
    "cuEventCreate", "cuStreamCreate", "cuMemPoolCreate",     "cudaMemGetInfo",
};
#define OUT_OF_MEMORY 2

/* A call that only asks after errors does not fail by itself. */
static const char *const exempt_calls[] = {"cudaGetLastError",   "cudaPeekAtLastError",
                                           "cudaGetErrorString", "cudaGetErrorName",
                                           "cuGetErrorString",   "cuGetErrorName"};

/* What orders work, and what such an order rests on. */
static const char *const waits[] = {
    "cudaStreamWaitEvent",   "cudaEventRecord",   "cudaEventSynchronize", "cudaStreamSynchronize",
    "cudaDeviceSynchronize", "cuStreamWaitEvent", "cuEventRecord",        "cuEventSynchronize",
    "cuStreamSynchronize",   "cuCtxSynchronize",
};

static bool begins_with_one(const char *function, const char *const *prefixes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(function, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

int gmd_fault_error_of(const char *function, bool memory_only)
{
    if (begins_with_one(function, exempt_calls, sizeof exempt_calls / sizeof *exempt_calls)) {
        return 0;
    }
    if (begins_with_one(function, memory_calls, sizeof memory_calls / sizeof *memory_calls)) {
        return OUT_OF_MEMORY;
    }
    return memory_only ? 0 : 999; /* cudaErrorUnknown, CUDA_ERROR_UNKNOWN */
}

bool gmd_fault_is_wait(const char *function)
{
    return begins_with_one(function, waits, sizeof waits / sizeof *waits);
}
