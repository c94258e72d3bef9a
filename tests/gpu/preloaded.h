/* preloaded.h - for libraries that are preloaded and define dlsym. */
#ifndef GMD_TEST_PRELOADED_H
#define GMD_TEST_PRELOADED_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* What dlsym of the C library gives. The file defines _GNU_SOURCE. */
static inline void *real_dlsym(void *handle, const char *name)
{
    /* Where glibc has it since dlopen moved into libc, and where it was before. */
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    void *found = NULL;
    for (size_t i = 0; i < sizeof versions / sizeof *versions && !found; i++) {
        found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    }
    void *(*real)(void *, const char *);
    memcpy(&real, &found, sizeof found); /* ISO C has no cast from object to function */
    return real(handle, name);
}

/* Whether it is one of the simulated libcudart's control functions, without which that is taken for
 * a real one. */
static inline bool is_control(const char *name)
{
    return strncmp(name, "gmd_sim_", 8) == 0;
}

#endif
