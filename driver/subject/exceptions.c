#include "gmd_exceptions.h"

#include "gmd_log.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The C++ part; it stays loaded. NULL: the allocator brings no libstdc++, or gmd was built without
 * a C++ compiler. */
static void *open_adapter(const gmd_subject *subject, const char *lib_directory)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/libgmd_exceptions.so", lib_directory);
    if (!dlsym(subject->library, "__cxa_throw") || length < 0 || (size_t)length >= sizeof path) {
        return NULL;
    }
    void *adapter = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!adapter) {
        GMD_LOG(SUBJECT, "exceptions are not told: %s", dlerror());
    }
    return adapter;
}

void gmd_exceptions_watch(const gmd_subject *subject, const char *lib_directory,
                          gmd_exception_fn *tell, void *context)
{
    void (*watch)(gmd_exception_fn * tell, void *context);
    void *adapter = open_adapter(subject, lib_directory);
    void *symbol = adapter ? dlsym(adapter, "gmd_exceptions_watch_process") : NULL;
    memcpy(&watch, &symbol, sizeof watch);
    if (watch) {
        watch(tell, context);
    }
    if (adapter) {
        dlclose(adapter);
    }
}

void gmd_exceptions_catch(gmd_subject *subject, const char *lib_directory)
{
    void *(*(*catching)(void *(*function)(size_t, int, cudaStream_t)))(size_t, int, cudaStream_t);
    void *adapter = open_adapter(subject, lib_directory);
    void *symbol = adapter ? dlsym(adapter, "gmd_exceptions_catching_malloc") : NULL;
    memcpy(&catching, &symbol, sizeof catching);
    if (catching) {
        subject->malloc = catching(subject->malloc);
    }
    if (adapter) {
        dlclose(adapter);
    }
}
