#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "gmd_demangle.h"

#include <dlfcn.h>
#include <string.h>

/* Python loads libstdc++ for extensions only: no global name leads to it. */
char *gmd_demangle(const char *symbol)
{
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    union {
        void *found;
        char *(*function)(const char *symbol, char *to, size_t *size, int *status);
    } demangler = {dlsym(library ? library : RTLD_DEFAULT, "__cxa_demangle")};
    int status = 0;
    char *words = demangler.found && strncmp(symbol, "_Z", 2) == 0
                      ? demangler.function(symbol, NULL, NULL, &status)
                      : NULL;
    if (library) {
        dlclose(library);
    }
    return words;
}
