/* Functions by name, as code that is not linked with the driver finds them. */
#include "state.h"

#include <string.h>

typedef void function(void);

/* A driver function under the name that the library exports, or under its plain name where that has
 * a version: cuMemAlloc is cuMemAlloc_v2. */
static function *find_driver_function(const char *name)
{
    static const struct {
        const char *name;
        function *address;
    } functions[] = {
#define ENTRY_POINT(result, function_name, parameters, arguments)                                  \
    {#function_name, (function *)gmd_sim_##function_name},
        GMD_CUDA_DRIVER_FUNCTIONS(ENTRY_POINT)
#undef ENTRY_POINT
    };
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *rest = functions[i].name + length;
        if (strncmp(functions[i].name, name, length) == 0 &&
            (*rest == '\0' || strcmp(rest, "_v2") == 0)) {
            return functions[i].address;
        }
    }
    return NULL;
}

static int look_up(sim_call *call, const char *symbol, void **out,
                   enum cudaDriverEntryPointQueryResult *status)
{
    if (!symbol || !*symbol || !out) {
        return call_misuse(call, cudaErrorInvalidValue, "no name, or no place for the function");
    }
    function *found = find_driver_function(symbol);
    memcpy(out, &found, sizeof *out);
    if (status) {
        *status = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    }
    return found || status ? cudaSuccess : cudaErrorSymbolNotFound;
}

cudaError_t gmd_sim_cudaGetDriverEntryPoint(const char *symbol, void **out,
                                            unsigned long long flags,
                                            enum cudaDriverEntryPointQueryResult *status)
{
    sim_call call;
    (void)flags;
    if (call_enter(&call, CALL_cudaGetDriverEntryPoint)) {
        call.record.result = look_up(&call, symbol, out, status);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaGetDriverEntryPointByVersion(const char *symbol, void **out,
                                                     unsigned int version, unsigned long long flags,
                                                     enum cudaDriverEntryPointQueryResult *status)
{
    sim_call call;
    (void)version;
    (void)flags;
    if (call_enter(&call, CALL_cudaGetDriverEntryPointByVersion)) {
        call.record.result = look_up(&call, symbol, out, status);
    }
    return (cudaError_t)call_leave(&call);
}

CUresult gmd_sim_cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                                     CUdriverProcAddressQueryResult *status)
{
    sim_call call;
    (void)version;
    (void)flags;
    if (call_enter(&call, CALL_cuGetProcAddress_v2)) {
        enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
        call.record.result = look_up(&call, symbol, out, &found);
        if (status) {
            *status = (CUdriverProcAddressQueryResult)found;
        }
        if (call.record.result == 0 && found == cudaDriverEntryPointSymbolNotFound) {
            call.record.result = CUDA_ERROR_NOT_FOUND;
        }
    }
    return (CUresult)call_leave(&call);
}
