/* gmd_intervals.h - disjoint address ranges, each with a number, ordered by address: what is live,
 * what was freed with work pending. O(log n) an operation; nodes lie in two arrays and are used
 * again, so that nothing is allocated once these are large enough. Addresses of different devices
 * are distinct (unified addressing).
 *
 * A B+ tree: a request asks several times, and with a thousand ranges a binary tree's search costs
 * ten cache misses and as many mispredicted branches. */
#ifndef GMD_INTERVALS_H
#define GMD_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gmd_interval {
    uint64_t address, end; /* end: first byte after it */
    uint64_t value;        /* the owner's */
} gmd_interval;

typedef struct gmd_interval_leaf gmd_interval_leaf;
typedef struct gmd_interval_inner gmd_interval_inner;

typedef struct gmd_intervals { /* zero-initialised is empty */
    gmd_interval_leaf *leaves;
    gmd_interval_inner *inners;
    struct {
        uint32_t used, capacity;
        uint32_t spare; /* the first of a list, and 1 more; 0: none */
    } leaf_pool, inner_pool;
    uint32_t root, height; /* height 0: the root is a leaf */
    uint32_t count;
} gmd_intervals;

void gmd_intervals_free(gmd_intervals *set);

/* The lowest interval that ends after `address`; NULL: none. Valid until the next change of the
 * set; its end may be moved in place, up to the next one's start, and its value changed. */
gmd_interval *gmd_intervals_after(const gmd_intervals *set, uint64_t address);

/* The highest interval that starts before `address`, likewise. */
gmd_interval *gmd_intervals_before(const gmd_intervals *set, uint64_t address);

/* Makes room for one more, so that the following insert cannot fail. False: the host has no memory.
 */
bool gmd_intervals_reserve(gmd_intervals *set);

/* The range must not overlap one that is there. False: the host has no memory, and nothing has
 * changed. */
bool gmd_intervals_insert(gmd_intervals *set, uint64_t address, uint64_t end, uint64_t value);

/* Removes the interval that starts at `address`, if there is one. */
void gmd_intervals_remove(gmd_intervals *set, uint64_t address);

#endif
