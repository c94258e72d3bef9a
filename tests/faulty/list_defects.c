/* list_defects LIBRARY... - the defects that each allocator of this folder can have: a line with
 * the library, a space and the defect. Libraries that name none are left out, and so are those
 * that a gate cannot test by their name: their functions and settings are called otherwise. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        const char *const *defects = library ? dlsym(library, "faulty_defects") : NULL;
        if (!library) {
            fprintf(stderr, "list_defects: %s\n", dlerror());
            return 2;
        }
        bool is_usual = library && dlsym(library, "gmd_malloc") && dlsym(library, "gmd_configure");
        for (; is_usual && defects && *defects; defects++) {
            printf("%s %s\n", argv[i], *defects);
        }
    }
    return 0;
}
