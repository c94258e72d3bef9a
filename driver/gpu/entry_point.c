#include "entry_point.h"

#include <dlfcn.h>
#include <string.h>

#define VERSION 12000 /* of CUDA: what a function is and does may differ in others */
#define INVALID_CONTEXT                                                                            \
    201 /* CUDA_ERROR_INVALID_CONTEXT: the runtime makes one when first called */

typedef cudaError_t entry_point_fn(const char *symbol, void **function, unsigned int version,
                                   unsigned long long flags,
                                   enum cudaDriverEntryPointQueryResult *result);

gmd_status find_entry_point(const gmd_runtime *runtime, const char *name, void *to,
                            gmd_error *error)
{
    void *library = dlopen(runtime->path, RTLD_NOW | RTLD_NOLOAD);
    void *found = library ? dlsym(library, "cudaGetDriverEntryPointByVersion") : NULL;
    if (!found) {
        return gmd_fail(error, GMD_BAD_INPUT, "%.500s has no cudaGetDriverEntryPointByVersion",
                        runtime->path);
    }
    entry_point_fn *entry_point = NULL;
    memcpy(&entry_point, &found, sizeof found); /* ISO C has no cast from object to function */
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    if (entry_point(name, &function, VERSION, cudaEnableDefault, &result) != cudaSuccess ||
        result != cudaDriverEntryPointSuccess || !function) {
        return gmd_fail(error, GMD_BAD_INPUT, "the driver has no %s", name);
    }
    memcpy(to, &function, sizeof function);
    return GMD_OK;
}

bool entry_point_may_retry(const gmd_runtime *runtime, int result)
{
    int device;
    return result == INVALID_CONTEXT && runtime->cudaGetDevice(&device) == cudaSuccess &&
           runtime->cudaSetDevice(device) == cudaSuccess;
}
