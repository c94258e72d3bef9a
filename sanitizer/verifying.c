#define _GNU_SOURCE
#include "guard_state.h"

#include "patterns.h"

#include "gmd_min.h"

#include <stddef.h>
#include <string.h>

uint32_t guard_watch(guard *g, const guarded_block *block, finding_moment moment, uint64_t expected)
{
    uint32_t ticket = atomic_fetch_add(&g->next_ticket, 1);
    watch *w = &g->watches[ticket % WATCHES];
    uint32_t kept = (uint32_t)gmd_min(block->recorded_count, GUARDED_STREAMS);
    w->moment = moment;
    w->stack = 0;
    w->expected = expected;
    w->is_reported = false;
    memcpy(&w->block, block, offsetof(guarded_block, recorded) + kept * sizeof block->recorded[0]);
    return ticket;
}

sweep_range guard_range(uint64_t from, uint64_t to, uint32_t flags, uint64_t expected,
                        uint64_t written, uint32_t ticket)
{
    return (sweep_range){.address = from,
                         .bytes = to - from,
                         .expected = expected,
                         .written = written,
                         .flags = flags,
                         .ticket = ticket};
}

/* Both zones are verified, written, or both. Gives the number of ranges. */
uint32_t guard_zones(const guarded_block *b, uint32_t flags, uint64_t written, uint32_t ticket,
                     sweep_range *out)
{
    uint64_t end = b->address + b->size;
    out[0] = guard_range(b->memory, b->address, flags, PATTERN_ZONE, written, ticket);
    out[1] = guard_range(end, b->memory + b->total, flags, PATTERN_ZONE, written, ticket);
    return 2;
}

uint32_t guard_new_ranges(const guard *g, const guarded_block *b, sweep_range *out)
{
    uint32_t count = guard_zones(b, SWEEP_WRITE, PATTERN_ZONE, 0, out);
    if (g->options.fills_fresh) {
        out[count++] =
            guard_range(b->address, b->address + b->size, SWEEP_WRITE, 0, PATTERN_FRESH, 0);
    }
    return count;
}

enum { STRIPED_FROM = 1 << 20 }; /* bytes of a block */

/* The program's part of a freed block. */
static uint32_t body_flags(const guard *g, const guarded_block *b)
{
    return g->options.is_striped && b->size >= STRIPED_FROM ? SWEEP_STRIPED : 0;
}

uint32_t guard_freeing(guard *g, const guarded_block *b, sweep_range *out)
{
    uint32_t ticket = guard_watch(g, b, MOMENT_FREE, PATTERN_ZONE);
    uint32_t count = guard_zones(b, SWEEP_VERIFY | SWEEP_WRITE, PATTERN_ZONE, ticket, out);
    out[count++] = guard_range(b->address, b->address + b->size, SWEEP_WRITE | body_flags(g, b), 0,
                               PATTERN_FREED, 0);
    return count;
}

uint32_t guard_freed(guard *g, const guarded_block *b, uint32_t flags, uint32_t ticket,
                     sweep_range *out)
{
    uint64_t end = b->address + b->size;
    uint32_t of_zones = flags | SWEEP_WRITE; /* the next owner is not to answer for a change */
    out[0] = guard_range(b->memory, b->address, of_zones, PATTERN_ZONE, PATTERN_ZONE, ticket);
    out[1] = guard_range(b->address, end, flags | body_flags(g, b), PATTERN_FREED, PATTERN_FREED,
                         ticket);
    out[2] = guard_range(end, b->memory + b->total, of_zones, PATTERN_ZONE, PATTERN_ZONE, ticket);
    return 3;
}
