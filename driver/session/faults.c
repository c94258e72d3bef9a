#include "gmd_faults.h"

#include <inttypes.h>
#include <string.h>

#define NOT_READY 600 /* of both APIs: an answer of queries, and no failure */

static bool is_runtime_error(uint32_t code)
{
    static const uint32_t codes[] = {
#define ERROR_CODE(name, value, text) value,
        GMD_CUDA_ERRORS(ERROR_CODE)
#undef ERROR_CODE
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i] == code && code) {
            return true;
        }
    }
    return false;
}

static bool is_driver_error(uint32_t code)
{
    static const uint32_t codes[] = {
#define ERROR_CODE(name, value) value,
        GMD_CUDA_DRIVER_ERRORS(ERROR_CODE)
#undef ERROR_CODE
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i] == code && code) {
            return true;
        }
    }
    return false;
}

gmd_status gmd_fault_check(const gmd_request *r, const char *function, gmd_error *error)
{
    bool is_runtime = strncmp(function, "cuda", 4) == 0;
    if (!(is_runtime ? is_runtime_error(r->error) : is_driver_error(r->error))) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "fault %s %u %u: %u is no %s that the simulated device knows", function,
                        r->count, r->error, r->error, is_runtime ? "cudaError_t" : "CUresult");
    }
    if (r->error == NOT_READY && !strstr(function, "Query") &&
        strcmp(function, "cudaEventElapsedTime") != 0) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "fault %s %u %u: 'not ready' is an answer of queries only", function,
                        r->count, r->error);
    }
    return GMD_OK;
}

gmd_status fault_plant(planted_faults *faults, const gmd_runtime *runtime, const gmd_request *r,
                       const char *function, uint64_t index, gmd_error *error)
{
    gmd_status status = gmd_fault_check(r, function, error);
    if (status != GMD_OK) {
        return status;
    }
    uint64_t calls = runtime->sim->gmd_sim_call_count(function);
    if (runtime->sim->gmd_sim_fault(function, r->count, r->every_later, (int)r->error) != 0) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "fault %s %u %u: the simulated device has no such function, or holds %d "
                        "faults already",
                        function, r->count, r->error, GMD_PLANTED_MAX);
    }
    if (faults->count < GMD_PLANTED_MAX) {
        faults->planted[faults->count++] = (planted_fault){.function = function,
                                                           .hits_at = calls + r->count,
                                                           .request = index,
                                                           .line = r->line,
                                                           .nth = r->count,
                                                           .calls_then = calls};
    }
    return GMD_OK;
}

bool fault_is_unfired(const planted_fault *fault, const gmd_runtime *runtime)
{
    return runtime->sim->gmd_sim_call_count(fault->function) < fault->hits_at;
}
