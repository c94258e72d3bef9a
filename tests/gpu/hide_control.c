/* hide_control.so - preloaded, it hides the control functions of gmd's simulated libcudart, which
 * is then taken for a real one: what gmd does on a real device is tested where there is none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

__attribute__((visibility("default"))) void *dlsym(void *restrict handle, const char *restrict name)
{
    static void *(*real)(void *, const char *);
    if (!real) {
        /* Where glibc has it since dlopen moved into libc, and where it was before. */
        void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        found = found ? found : dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        found = found ? found : dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
        memcpy(&real, &found, sizeof found); /* ISO C has no cast from object to function */
    }
    return strncmp(name, "gmd_sim_", 8) == 0 ? NULL : real(handle, name);
}
