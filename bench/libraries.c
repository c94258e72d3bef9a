#include "libraries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *bench_libraries(const char *program, char *path, size_t size)
{
    const char *set = getenv("GMD_LIB_DIR"), *slash = strrchr(program, '/');
    if (set && *set) {
        return set;
    }
    snprintf(path, size, "%.*s/../lib/gmd", slash ? (int)(slash - program) : 1,
             slash ? program : ".");
    return path;
}
