#include "generator.h"

#include "gmd_size.h"

#include <string.h>

/* --- sizes ------------------------------------------------------------------------------- */

uint64_t generator_limit(const gmd_profile *p)
{
    return (uint64_t)(p->fraction * (double)p->conditions.capacity_bytes);
}

/* What is left of the memory, or all of it, and a little more or less. */
static uint64_t size_near_cap(gmd_generator *g, uint8_t device)
{
    static const int64_t steps[] = {-(int64_t)(2 * GMD_MIB), -(int64_t)GMD_MIB, -512, 0, 1, 512,
                                    (int64_t)GMD_MIB};
    uint64_t limit = generator_limit(g->profile), used = g->live_bytes[device];
    uint64_t left = used < limit ? limit - used : limit;
    uint64_t aim = gmd_random_chance(&g->random, 70) ? left : limit / 2;
    uint64_t size = aim + (uint64_t)steps[gmd_random_below(&g->random, 7)];
    return size > 2 * limit ? aim : size; /* below zero */
}

static uint64_t size_at_a_boundary(gmd_random *r)
{
    static const uint64_t around[] = {512, 4096, GMD_MIB, 2 * GMD_MIB, 10 * GMD_MIB, 20 * GMD_MIB};
    static const int64_t steps[] = {-512, -1, 0, 0, 1, 512};
    return around[gmd_random_below(r, 6)] + (uint64_t)steps[gmd_random_below(r, 6)];
}

/* Sums wrap around near 2^64; powers of two, and shifts, end at 2^63. */
static uint64_t huge_size(gmd_random *r)
{
    static const uint64_t huge[] = {
        UINT64_MAX,
        UINT64_MAX - 511,
        UINT64_MAX - 1022,
        UINT64_MAX - 1533,
        UINT64_MAX - (2 * GMD_MIB),
        UINT64_MAX / 2 + 2,
        UINT64_C(0x9fffffffffffffff),
        UINT64_MAX - (UINT64_C(1) << 40),
    };
    return huge[gmd_random_below(r, sizeof huge / sizeof *huge)];
}

uint64_t generator_choose_size(gmd_generator *g, uint8_t device)
{
    gmd_random *r = &g->random;
    const gmd_profile *p = g->profile;
    if (p->has_huge_sizes && gmd_random_below(r, 100) == 0) {
        return huge_size(r);
    }
    if (gmd_random_below(r, 400) == 0) {
        return 0;
    }
    if (gmd_random_chance(r, p->palette_percent)) {
        return p->palette[gmd_random_below(r, p->palette_count)];
    }
    if (gmd_random_chance(r, p->cap_percent)) {
        return size_near_cap(g, device);
    }
    if (gmd_random_chance(r, 50)) {
        return size_at_a_boundary(r);
    }
    return gmd_random_chance(r, 50) ? 1 + gmd_random_below(r, GMD_MIB / 16)
                                    : 1 + gmd_random_below(r, 32 * GMD_MIB);
}

/* --- requests ---------------------------------------------------------------------------- */

/* While a stream is captured most requests are on it, and few others are allowed. */
bool generator_is_for_capture(gmd_generator *g)
{
    return g->pools.capturing && gmd_random_chance(&g->random, 60);
}

uint8_t generator_choose_device(gmd_generator *g)
{
    if (g->profile->conditions.device_count > 1 && generator_is_for_capture(g)) {
        return g->pools.capturing - 1;
    }
    return (uint8_t)gmd_random_below(&g->random, g->profile->conditions.device_count);
}

gmd_request generator_alloc(gmd_generator *g, uint64_t bytes, uint32_t stream, uint8_t device)
{
    gmd_generated_block b = {g->next_block++, stream, device, bytes};
    g->live[g->live_count++] = b;
    g->live_bytes[device] += bytes < generator_limit(g->profile) ? bytes : 0;
    return (gmd_request){
        .op = GMD_OP_ALLOC, .block = b.block, .bytes = bytes, .stream = stream, .device = device};
}

gmd_request generator_free(gmd_generator *g, uint32_t which)
{
    gmd_generated_block b = g->live[which];
    memmove(&g->live[which], &g->live[which + 1], (g->live_count - which - 1) * sizeof b);
    g->live_count--;
    g->live_bytes[b.device] -= b.bytes < generator_limit(g->profile) ? b.bytes : 0;
    return (gmd_request){.op = GMD_OP_FREE, .block = b.block, .device = b.device};
}
