/* gmd_faults.h - the `fault` requests of a trace: whether they can be carried out, and whether they
 * hit anything. */
#ifndef GMD_FAULTS_H
#define GMD_FAULTS_H

#include "gmd_error.h"
#include "gmd_runtime.h"
#include "gmd_trace.h"

#define GMD_PLANTED_MAX 64 /* as many as the simulated device takes */

typedef struct planted_fault {
    const char *function;
    uint64_t hits_at;    /* of all calls of the function, the one that it fails first */
    uint64_t request;    /* index */
    uint32_t line;       /* of the file; 0: none */
    uint32_t nth;        /* as asked for */
    uint64_t calls_then; /* of the function, when it was planted */
} planted_fault;

typedef struct planted_faults { /* zero-initialised: none */
    planted_fault planted[GMD_PLANTED_MAX];
    uint32_t count;
} planted_faults;

/* Refuses an error that the simulated device's function never answers with, by its name. */
gmd_status gmd_fault_check(const gmd_request *request, const char *function, gmd_error *error);

/* Plants it in the simulated device; the function's name must live as long as the run. */
gmd_status fault_plant(planted_faults *faults, const gmd_runtime *runtime,
                       const gmd_request *request, const char *function, uint64_t index,
                       gmd_error *error);

/* The allocator has not made the call that this fault was to fail. */
bool fault_is_unfired(const planted_fault *fault, const gmd_runtime *runtime);

#endif
