#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "instrumented.h"

#include "elf_file.h"
#include "gmd_accesses.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void note_call(void *context, const char *name)
{
    *(bool *)context |= strncmp(name, "__tsan_", strlen("__tsan_")) == 0;
}

bool instrumented_is(const char *path)
{
    bool calls = false;
    elf_file_each_needed(path, note_call, &calls);
    return calls;
}

bool instrumented_is_told(const char *message)
{
    return strstr(message, "__tsan_") || strstr(message, "libtsan.so") ||
           strstr(message, "libclang_rt.tsan");
}

gmd_status instrumented_prepare(const char *lib_directory, gmd_error *error)
{
    static const char *const files[] = {"libtsan.so.2", "libtsan.so.0"};
    if (dlsym(RTLD_DEFAULT, "__tsan_init") && !dlsym(RTLD_DEFAULT, "gmd_tsan_set_yield")) {
        return GMD_OK;
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/tsan/%s", lib_directory, files[i]);
        if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL)) { /* stays: what calls it may */
            return gmd_fail(error, GMD_FAILED,
                            "gmd's part for libraries compiled with -fsanitize=thread cannot be "
                            "loaded: %s",
                            dlerror());
        }
    }
    return GMD_OK;
}

void gmd_accesses_yield(gmd_tsan_yield yield)
{
    void (*set_yield)(gmd_tsan_yield yield) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "gmd_tsan_set_yield");
    memcpy(&set_yield, &symbol, sizeof symbol);
    if (set_yield) {
        set_yield(yield);
    }
}
