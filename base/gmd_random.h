/* gmd_random.h - the source of all choices that are made at random: the same seed, the same
 * choices. */
#ifndef GMD_RANDOM_H
#define GMD_RANDOM_H

#include "gmd_hash.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gmd_random {
    uint64_t state;
} gmd_random;

/* splitmix64 (Steele, Lea, Flood 2014): any seed is a good one, and it passes BigCrush. */
static inline uint64_t gmd_random_mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline uint64_t gmd_random_next(gmd_random *r)
{
    return gmd_random_mix(r->state += GMD_HASH_MULTIPLIER);
}

/* 0 to bound - 1; bound 0 gives 0. The bias is below bound / 2^64. */
static inline uint64_t gmd_random_below(gmd_random *r, uint64_t bound)
{
    return bound ? gmd_random_next(r) % bound : 0;
}

static inline bool gmd_random_chance(gmd_random *r, unsigned percent)
{
    return gmd_random_below(r, 100) < percent;
}

/* A seed for one of many things that come of one seed. */
static inline uint64_t gmd_random_derive(uint64_t seed, uint64_t index)
{
    gmd_random r = {seed ^ (index + 1) * UINT64_C(0xd1342543de82ef95)};
    return gmd_random_next(&r);
}

#endif
