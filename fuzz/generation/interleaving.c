#include "gmd_interleaving.h"

#include "gmd_random.h"

/* A sequence of twenty requests has some hundred steps, and one of four hundred in a library that
 * is compiled with -fsanitize=thread some ten thousand. A guess of twice as many steps as there are
 * halves the chance of each point. */
#define STEPS_LEAST_LOG 5
#define STEPS_LOGS      10

static uint32_t draw_depth(gmd_random *r)
{
    static const uint32_t depths[] = {1, 1, 2, 2, 2, 3, 3, 4, 8, 16};
    return depths[gmd_random_below(r, sizeof depths / sizeof *depths)];
}

gmd_schedule gmd_interleaving_of(uint64_t seed)
{
    static const gmd_schedule_kind kinds[] = {GMD_SCHEDULE_SEEDED, GMD_SCHEDULE_SEEDED,
                                              GMD_SCHEDULE_BOUNDED, GMD_SCHEDULE_PCT};
    gmd_random r = {gmd_random_derive(seed, 0)};
    gmd_schedule drawn = {.kind = kinds[gmd_random_below(&r, 4)], .seed = seed};
    if (drawn.kind != GMD_SCHEDULE_SEEDED) {
        drawn.depth = draw_depth(&r) + (drawn.kind == GMD_SCHEDULE_PCT);
        drawn.depth = drawn.depth > GMD_SCHEDULE_DEPTH_MAX ? GMD_SCHEDULE_DEPTH_MAX : drawn.depth;
        drawn.steps = UINT32_C(1) << (STEPS_LEAST_LOG + gmd_random_below(&r, STEPS_LOGS));
    }
    return drawn;
}
