/* gmd_minimize_limits.h - how long minimising (gmd_minimize.h) may take, and what it came to. */
#ifndef GMD_MINIMIZE_LIMITS_H
#define GMD_MINIMIZE_LIMITS_H

#include "gmd_outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gmd_minimize_limits {
    uint64_t tries; /* at most; 0: no limit */
    double seconds; /* likewise */
    /* Called after each success, for a status line; may be NULL. */
    void (*progress)(void *context, size_t requests, uint64_t tries);
    void *context;
} gmd_minimize_limits;

typedef struct gmd_minimized {
    uint64_t tries;
    bool is_complete;        /* false: a limit, or the user, ended it early */
    gmd_violation violation; /* of the result */
} gmd_minimized;

#endif
