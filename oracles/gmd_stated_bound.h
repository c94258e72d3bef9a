/* gmd_stated_bound.h - how much memory a scenario says that it takes, and what it came to. */
#ifndef GMD_STATED_BOUND_H
#define GMD_STATED_BOUND_H

#include "gmd_abi.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gmd_stated_bound {
    bool is_reserved;      /* of reserved bytes; else of allocated ones */
    bool leaks;            /* this variant passes it on purpose */
    bool is_told_only;     /* it is of PyTorch's allocator, and this is another: nobody judges it */
    uint64_t bytes;        /* that the scenario states */
    uint64_t peak;         /* from there on; GMD_STAT_UNKNOWN where nobody tells */
    uint32_t passed_phase; /* peak > bytes: the index of the phase in which that happened */
} gmd_stated_bound;

static inline bool gmd_stated_bound_is_passed(const gmd_stated_bound *bound)
{
    return bound->peak != GMD_STAT_UNKNOWN && bound->peak > bound->bytes;
}

/* Whether that is a fault of the allocator's. */
static inline bool gmd_stated_bound_is_broken(const gmd_stated_bound *bound)
{
    return gmd_stated_bound_is_passed(bound) && !bound->leaks && !bound->is_told_only;
}

#endif
