/* gmd_min.h - the smaller and the larger of two sizes or counts. */
#ifndef GMD_MIN_H
#define GMD_MIN_H

#include <stdint.h>

static inline uint64_t gmd_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t gmd_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
