/* reserved_ranges.h - what was reserved when: ranges of addresses that are taken, and given back in
 * whole or in part. */
#ifndef GMD_DIAGNOSIS_RESERVED_RANGES_H
#define GMD_DIAGNOSIS_RESERVED_RANGES_H

#include "address_ranks.h"
#include "gmd_reserved.h"

#include <stddef.h>

typedef struct reserved_ranges {
    const address_ranks *ranks;
    rank_set starts; /* of the ranges that are reserved now */
    uint32_t *at;    /* by the rank of a start: index into `items` */
    gmd_reserved *items;
    size_t count, capacity;
} reserved_ranges;

bool reserved_ranges_make(reserved_ranges *s, const address_ranks *ranks);
void reserved_ranges_free(reserved_ranges *s);

/* The range that holds the address of a rank now; NULL: none. Valid until one is added. */
const gmd_reserved *reserved_ranges_find(const reserved_ranges *s, uint32_t rank);

/* Adds a range from rank `start` to `end`, whose `address` and `size` are set here. `*is_new`: some
 * of it was reserved already, so nothing changed. False: no host memory. */
bool reserved_ranges_take(reserved_ranges *s, uint32_t start, uint32_t end,
                          const gmd_reserved *range, bool *is_new);

/* Gives back what lies between two ranks. What of it is not known to be reserved was taken before
 * the first event: it is added with the fields of `unknown`, and counted. False: no host memory. */
bool reserved_ranges_give(reserved_ranges *s, uint32_t start, uint32_t end,
                          const gmd_reserved *unknown, size_t *unknown_count);

/* Adds what of a range is not reserved now as of before the first event; likewise. */
bool reserved_ranges_fill(reserved_ranges *s, uint32_t start, uint32_t end,
                          const gmd_reserved *unknown, size_t *unknown_count);

#endif
