/* libraries.h - where the programs that are run by hand find gmd's own libraries. */
#ifndef GMD_BENCH_LIBRARIES_H
#define GMD_BENCH_LIBRARIES_H

#include <stddef.h>

/* $GMD_LIB_DIR, else ../lib/gmd beside the folder of `program` (argv[0]), written to `path`. */
const char *bench_libraries(const char *program, char *path, size_t size);

#endif
