/* gmd_intervals.h - disjoint address ranges, each with a number, ordered by address: what is live,
 * what was freed with work pending. O(log n) an operation; nodes lie in one array and are used
 * again, so that nothing is allocated once it is large enough. Addresses of different devices are
 * distinct (unified addressing). */
#ifndef GMD_INTERVALS_H
#define GMD_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

#define GMD_INTERVAL_NONE UINT32_MAX

typedef struct gmd_interval {
    uint64_t address, end; /* end: first byte after it */
    uint64_t value;        /* the owner's */
    uint32_t left, right, rank;
} gmd_interval;

typedef struct gmd_intervals {
    gmd_interval *nodes;
    uint32_t used, capacity, spare, root, count;
} gmd_intervals;

void gmd_intervals_init(gmd_intervals *set);
void gmd_intervals_free(gmd_intervals *set);

/* The lowest interval that ends after `address`; NULL: none. Valid until the next insertion. */
gmd_interval *gmd_intervals_after(const gmd_intervals *set, uint64_t address);

/* The range must not overlap one that is there. False: the host has no memory. */
bool gmd_intervals_insert(gmd_intervals *set, uint64_t address, uint64_t end, uint64_t value);

/* Removes the interval that starts at `address`, if there is one. */
void gmd_intervals_remove(gmd_intervals *set, uint64_t address);

#endif
