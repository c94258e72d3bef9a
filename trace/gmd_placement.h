/* gmd_placement.h - in which order of addresses the simulated device hands out memory (the header
 * line `placement`, the option --placement): it decides between blocks of one size, and so where an
 * allocator splits. Thread safety: pure functions of their arguments. */
#ifndef GMD_PLACEMENT_H
#define GMD_PLACEMENT_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gmd_placement_kind {
    GMD_PLACEMENT_UNSTATED, /* rising */
    GMD_PLACEMENT_RISING,   /* each address is higher than those before */
    GMD_PLACEMENT_SEEDED,   /* drawn from the seed */
} gmd_placement_kind;

typedef struct gmd_placement { /* zero-initialised: unstated */
    gmd_placement_kind kind;
    uint64_t seed; /* 0 but for GMD_PLACEMENT_SEEDED */
} gmd_placement;

static inline bool gmd_placement_is_stated(const gmd_placement *placement)
{
    return placement->kind != GMD_PLACEMENT_UNSTATED;
}

static inline bool gmd_placement_equal(const gmd_placement *a, const gmd_placement *b)
{
    return a->kind == b->kind && a->seed == b->seed;
}

/* Reads "rising" or "seed N". On failure it is unstated, and the message says what was expected. */
gmd_status gmd_placement_parse(gmd_placement *placement, const char *text, size_t length,
                               gmd_error *error);

/* Writes what the function above reads; an unstated one has no text. Returns `text`. */
enum { GMD_PLACEMENT_TEXT = 32 };
const char *gmd_placement_write(const gmd_placement *placement, char text[GMD_PLACEMENT_TEXT]);

#endif
