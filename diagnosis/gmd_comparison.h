/* gmd_comparison.h - who holds the memory in several snapshots, side by side: two runs of one job,
 * two times of it, or its ranks. Lines, stacks and categories are matched by what they are called,
 * never by addresses or numbers, which differ from run to run. */
#ifndef GMD_COMPARISON_H
#define GMD_COMPARISON_H

#include "gmd_error.h"
#include "gmd_facts.h"
#include "gmd_holders.h"
#include "gmd_places.h"

enum { GMD_COMPARED_MAX = 64 }; /* snapshots */

typedef struct gmd_compared_row {
    const gmd_places *named_by; /* whose numbers `key` is of */
    uint64_t key;               /* as gmd_holder.key for the grouping */
    uint64_t bytes[GMD_COMPARED_MAX];
} gmd_compared_row;

typedef struct gmd_comparison { /* largest difference first; of equal ones by name */
    gmd_compared_row *rows;
    size_t row_count;
    size_t snapshot_count;
    gmd_grouping grouping;            /* GMD_BY_LINE, GMD_BY_STACK or GMD_BY_CATEGORY */
    uint64_t total[GMD_COMPARED_MAX]; /* allocated bytes at the moment */
} gmd_comparison;

/* Who holds the memory of one of them. */
typedef struct gmd_compared_side {
    const gmd_places *places;
    const gmd_holders *holders; /* of the grouping */
} gmd_compared_side;

/* Compares `count` sides. Their places must stay as long as the comparison. */
gmd_status gmd_comparison_of(gmd_comparison *comparison, const gmd_compared_side *sides,
                             size_t count, gmd_grouping grouping, gmd_error *error);

/* The same of snapshots, each at the moment of its own in `moments`. The facts must stay as long as
 * the comparison. */
gmd_status gmd_comparison_make(gmd_comparison *comparison, const gmd_facts *const *facts,
                               const uint32_t *moments, size_t count, gmd_grouping grouping,
                               gmd_error *error);
void gmd_comparison_free(gmd_comparison *comparison);

/* The largest less the smallest of a row. */
uint64_t gmd_compared_spread(const gmd_comparison *comparison, const gmd_compared_row *row);

#endif
