/* Functions by name, as code that is not linked with the driver finds them. */
#include "calls.h"

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
        {"cuCtxRecordEvent", 12050},
        {"cuMulticast", 12010},
        {"cuGetProcAddress", 11030},
        {"cuMemPool", 11020},
        {"cuMemAllocAsync", 11020},
        {"cuMemFreeAsync", 11020},
        {"cuMemAllocFromPoolAsync", 11020},
        {"cuDeviceGetDefaultMemPool", 11020},
        {"cuDeviceGetMemPool", 11020},
        {"cuDeviceSetMemPool", 11020},
        {"cuMemPrefetchAsync", 8000},
        {"cuMemAdvise", 8000},
        {"cuDeviceGetP2PAttribute", 8000},
        {"cuDeviceGetUuid", 9020},
        {"cuPointerGetAttributes", 7000},
        {"cuIpc", 4010},
        {"cuDeviceCanAccessPeer", 4000},
        {"cuMemRetainAllocationHandle", 11000},
        {"cuMemAddress", 10020},
        {"cuMemCreate", 10020},
        {"cuMemRelease", 10020},
        {"cuMemMap", 10020},
        {"cuMemUnmap", 10020},
        {"cuMemSetAccess", 10020},
        {"cuMemGetAccess", 10020},
        {"cuMemGetAllocation", 10020},
        {"cuMemExport", 10020},
        {"cuMemImport", 10020},
        {"cuLaunchHostFunc", 10000},
        {"cuDevicePrimaryCtx", 7000},
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (strncmp(name, groups[i].prefix, strlen(groups[i].prefix)) == 0) {
            return groups[i].version;
        }
    }
    return 0;
}

typedef struct named_function {
    const char *name;
    function *address;
} named_function;

/* A function under its plain name: cuMemAlloc gives cuMemAlloc_v2, which itself is no name to ask
 * for. */
static function *find_in(const named_function *functions, size_t count, const char *name)
{
    size_t length = strlen(name);
    if (length < 4) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        const char *rest = functions[i].name + length;
        if (strncmp(functions[i].name, name, length) == 0 &&
            strcmp(name + length - 3, "_v2") != 0 && (*rest == '\0' || strcmp(rest, "_v2") == 0)) {
            return functions[i].address;
        }
    }
    return NULL;
}

static function *find_driver_function(const char *name, bool is_per_thread)
{
#define ENTRY_POINT(result, function_name, parameters, arguments)                                  \
    {#function_name, (function *)gmd_sim_##function_name},
#define OWN_ENTRY_POINT(result, function_name, suffix, parameters, arguments)                      \
    {#function_name, (function *)gmd_sim_##function_name##suffix},
    static const named_function functions[] = {GMD_CUDA_DRIVER_FUNCTIONS(ENTRY_POINT)};
    static const named_function own[] = {GMD_CUDA_DRIVER_PER_THREAD_FUNCTIONS(
        OWN_ENTRY_POINT) GMD_CUDA_DRIVER_PER_THREAD_SYNCHRONOUS(OWN_ENTRY_POINT)};
#undef ENTRY_POINT
#undef OWN_ENTRY_POINT
    function *found = is_per_thread ? find_in(own, sizeof own / sizeof *own, name) : NULL;
    return found ? found : find_in(functions, sizeof functions / sizeof *functions, name);
}

/* The runtime's and the driver's flags have the same values. */
static int look_up(sim_call *call, const char *symbol, void **out, int version,
                   unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    const unsigned long long known = cudaEnableLegacyStream | cudaEnablePerThreadDefaultStream;
    if (!symbol || !out || (flags & ~known)) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no name, no place for the function, or unknown flags");
    }
    function *found = find_driver_function(symbol, flags & cudaEnablePerThreadDefaultStream);
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
    if (call_enter(&call, CALL_cudaGetDriverEntryPoint)) {
        call.record.result = look_up(&call, symbol, out, CUDART_VERSION, flags, status);
    }
    return (cudaError_t)call_leave(&call);
}

cudaError_t gmd_sim_cudaGetDriverEntryPointByVersion(const char *symbol, void **out,
                                                     unsigned int version, unsigned long long flags,
                                                     enum cudaDriverEntryPointQueryResult *status)
{
    sim_call call;
    if (call_enter(&call, CALL_cudaGetDriverEntryPointByVersion)) {
        call.record.result = look_up(&call, symbol, out, (int)version, flags, status);
    }
    return (cudaError_t)call_leave(&call);
}

CUresult gmd_sim_cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                                     CUdriverProcAddressQueryResult *status)
{
    sim_call call;
    if (call_enter(&call, CALL_cuGetProcAddress_v2)) {
        enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
        call.record.result = look_up(&call, symbol, out, version, flags, &found);
        if (status) {
            *status = (CUdriverProcAddressQueryResult)found;
        }
    }
    return (CUresult)call_leave(&call);
}
