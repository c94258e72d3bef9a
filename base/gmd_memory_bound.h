/* gmd_memory_bound.h - a bound on the memory that this process takes while it reads a file, which
 * anybody may have written. The kernel counts (RLIMIT_DATA), so that nothing is left out: past the
 * bound an allocation fails, which every reader reports as GMD_NO_MEMORY. */
#ifndef GMD_MEMORY_BOUND_H
#define GMD_MEMORY_BOUND_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gmd_memory_bound {
    uint64_t bytes;        /* more than there was at the beginning */
    uint64_t limit_before; /* of the process */
    bool is_set;
} gmd_memory_bound;

/* Half of the memory that the machine has, or that its control group may have. */
uint64_t gmd_memory_bound_default(void);

/* `bytes`: 0 is the default. Bounds do not nest. */
void gmd_memory_bound_begin(gmd_memory_bound *bound, uint64_t bytes);

/* Lifts it. What failed for the bound's sake is GMD_BAD_INPUT then, with a message that names
 * `path` and --max-memory; any other status is handed on. */
gmd_status gmd_memory_bound_end(const gmd_memory_bound *bound, const char *path, gmd_status status,
                                gmd_error *error);

#endif
