#include "gmd_exceptions.h"

#include "gmd_log.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* A function of the C++ part, which stays loaded. NULL: the allocator brings no libstdc++, or gmd
 * was built without a C++ compiler. */
static void *function_of_adapter(const gmd_subject *subject, const char *lib_directory,
                                 const char *name)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/libgmd_exceptions.so", lib_directory);
    if (!dlsym(subject->library, "__cxa_throw") || length < 0 || (size_t)length >= sizeof path) {
        return NULL;
    }
    void *adapter = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!adapter) {
        GMD_LOG(SUBJECT, "exceptions are not told: %s", dlerror());
        return NULL;
    }
    void *function = dlsym(adapter, name);
    dlclose(adapter);
    return function;
}

void gmd_exceptions_watch(const gmd_subject *subject, const char *lib_directory,
                          gmd_exception_fn *tell, void *context)
{
    void (*watch)(gmd_exception_fn *, void *);
    void *symbol = function_of_adapter(subject, lib_directory, "gmd_exceptions_watch_process");
    memcpy(&watch, &symbol, sizeof watch);
    if (watch) {
        watch(tell, context);
    }
}

void gmd_exceptions_catch(gmd_subject *subject, const char *lib_directory)
{
    typedef void *malloc_fn(size_t, int, cudaStream_t);
    malloc_fn *(*catching)(malloc_fn *);
    void *symbol = function_of_adapter(subject, lib_directory, "gmd_exceptions_catching_malloc");
    memcpy(&catching, &symbol, sizeof catching);
    if (catching) {
        subject->malloc = catching(subject->malloc);
    }
}
