/* Functions by name, as code that is not linked with the driver finds them. */
#include "state.h"

#include <string.h>

typedef void function(void);

/* The CUDA version that brought a group of functions, by the beginning of their names; all others
 * were there before 3.0. (From the "Added" notes of the driver API's release notes.) */
static int version_of(const char *name)
{
    static const struct {
        const char *prefix;
        int version;
    } groups[] = {
        {"cuMulticast", 12010},      {"cuGetProcAddress", 11030},
        {"cuMemPool", 11020},        {"cuMemAllocAsync", 11020},
        {"cuMemFreeAsync", 11020},   {"cuMemRetainAllocationHandle", 11000},
        {"cuMemAddress", 10020},     {"cuMemCreate", 10020},
        {"cuMemRelease", 10020},     {"cuMemMap", 10020},
        {"cuMemUnmap", 10020},       {"cuMemSetAccess", 10020},
        {"cuMemGetAccess", 10020},   {"cuMemGetAllocation", 10020},
        {"cuMemExport", 10020},      {"cuMemImport", 10020},
        {"cuLaunchHostFunc", 10000}, {"cuDevicePrimaryCtx", 7000},
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (strncmp(name, groups[i].prefix, strlen(groups[i].prefix)) == 0) {
            return groups[i].version;
        }
    }
    return 0;
}

/* A driver function under its plain name: cuMemAlloc gives cuMemAlloc_v2, which itself is no name
 * to ask for. */
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
    if (length < 4) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *rest = functions[i].name + length;
        if (strncmp(functions[i].name, name, length) == 0 &&
            strcmp(name + length - 3, "_v2") != 0 && (*rest == '\0' || strcmp(rest, "_v2") == 0)) {
            return functions[i].address;
        }
    }
    return NULL;
}

static int look_up(sim_call *call, const char *symbol, void **out, int version,
                   enum cudaDriverEntryPointQueryResult *status)
{
    if (!symbol || !out) {
        return call_misuse(call, cudaErrorInvalidValue, "no name, or no place for the function");
    }
    function *found = find_driver_function(symbol);
    bool is_too_new = found && version_of(symbol) > version;
    found = is_too_new ? NULL : found;
    memcpy(out, &found, sizeof *out);
    if (status) {
        *status = is_too_new ? cudaDriverEntryPointVersionNotSufficent
                  : found    ? cudaDriverEntryPointSuccess
                             : cudaDriverEntryPointSymbolNotFound;
    }
    return cudaSuccess;
}

cudaError_t gmd_sim_cudaGetDriverEntryPoint(const char *symbol, void **out,
                                            unsigned long long flags,
                                            enum cudaDriverEntryPointQueryResult *status)
{
    sim_call call;
    (void)flags;
    if (call_enter(&call, CALL_cudaGetDriverEntryPoint)) {
        call.record.result = look_up(&call, symbol, out, CUDART_VERSION, status);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaGetDriverEntryPointByVersion(const char *symbol, void **out,
                                                     unsigned int version, unsigned long long flags,
                                                     enum cudaDriverEntryPointQueryResult *status)
{
    sim_call call;
    (void)flags;
    if (call_enter(&call, CALL_cudaGetDriverEntryPointByVersion)) {
        call.record.result = look_up(&call, symbol, out, (int)version, status);
    }
    return (cudaError_t)call_leave(&call);
}

CUresult gmd_sim_cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                                     CUdriverProcAddressQueryResult *status)
{
    sim_call call;
    (void)flags;
    if (call_enter(&call, CALL_cuGetProcAddress_v2)) {
        enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
        call.record.result = look_up(&call, symbol, out, version, &found);
        if (status) {
            *status = (CUdriverProcAddressQueryResult)found;
        }
    }
    return (CUresult)call_leave(&call);
}
