/* minimize_count.c - where the same is done again and again: how often it must be. */
#include "minimizer.h"

#include "gmd_repeats.h"

#include <stdlib.h>
#include <string.h>

#define TURNS_LEAST 4
#define TURNS_LONG  32 /* from here on turns are not dropped one by one */

typedef struct counting {
    bool *drops_request, *drops_block; /* room for all of them */
    size_t requests, blocks;
} counting;

/* Without all turns from `kept` on. */
static bool try_turns(minimizer *m, const counting *c, size_t at, const gmd_repeat *r, size_t kept)
{
    memset(c->drops_request, 0, c->requests * sizeof *c->drops_request);
    memset(c->drops_block, 0, c->blocks * sizeof *c->drops_block);
    for (size_t i = kept * r->length; i < r->turns * r->length; i++) {
        c->drops_request[at + i] = true;
    }
    return minimizer_try_without(m, c->drops_request, c->drops_block);
}

static size_t turns_left(const minimizer *m, size_t at, const gmd_repeat *r, size_t kept)
{
    size_t left = m->best->count > at ? (m->best->count - at) / r->length : 0;
    return left < kept ? left : kept;
}

/* The fewest turns from `at` on, found by bisection. Mostly the last is needed: what came after the
 * violation is gone already. True: some went. */
static bool bisect(minimizer *m, const counting *c, size_t at, gmd_repeat *r)
{
    size_t too_few = 0, before = r->turns;
    if (try_turns(m, c, at, r, 0)) {
        r->turns = 0;
        return true;
    }
    if (!try_turns(m, c, at, r, r->turns - 1)) {
        return false;
    }
    r->turns = turns_left(m, at, r, r->turns - 1);
    while (r->turns > too_few + 1 && !m->is_over) {
        size_t middle = too_few + (r->turns - too_few) / 2;
        if (!try_turns(m, c, at, r, middle)) {
            too_few = middle;
            continue;
        }
        r->turns = turns_left(m, at, r, middle);
    }
    return r->turns < before;
}

#define TURNS_WITH_FREES 1024 /* from here on blocks are freed: so many live ones take long */

/* Without one request of each turn. True: one went, and the turns are shorter. */
static bool shorten(minimizer *m, const counting *c, size_t at, const gmd_repeat *r)
{
    for (uint32_t k = r->length; k-- > 0 && r->length > 1 && !m->is_over;) {
        if (r->turns >= TURNS_WITH_FREES && gmd_op_is(m->best->requests[at + k].op, GMD_IS_FREE)) {
            continue;
        }
        memset(c->drops_request, 0, c->requests * sizeof *c->drops_request);
        memset(c->drops_block, 0, c->blocks * sizeof *c->drops_block);
        for (size_t turn = 0; turn < r->turns; turn++) {
            c->drops_request[at + turn * r->length + k] = true;
        }
        if (minimizer_try_without(m, c->drops_request, c->drops_block)) {
            return true;
        }
    }
    return false;
}

bool minimizer_count(minimizer *m)
{
    counting c = {.requests = m->best->count, .blocks = (size_t)m->best->blocks.count + 1};
    bool has_changed = false;
    c.drops_request = calloc(c.requests + 1, sizeof *c.drops_request);
    c.drops_block = calloc(c.blocks, sizeof *c.drops_block);
    bool has_room = c.drops_request && c.drops_block;
    for (size_t at = 0; has_room && at < m->best->count && !m->is_over;) {
        gmd_repeat r = gmd_repeat_at(m->best, at, &(gmd_repeat_search){.least = TURNS_LEAST});
        if (r.turns >= TURNS_LEAST) {
            has_changed = bisect(m, &c, at, &r) || has_changed;
            bool is_shorter = r.turns >= TURNS_LEAST && shorten(m, &c, at, &r);
            has_changed = has_changed || is_shorter;
            at += is_shorter ? 0 : r.turns * r.length;
        } else {
            at++;
        }
    }
    free(c.drops_request);
    free(c.drops_block);
    return has_changed;
}

void minimizer_mark_counted(const minimizer *m, bool *is_counted)
{
    memset(is_counted, 0, m->best->count * sizeof *is_counted);
    for (size_t at = 0; at < m->best->count;) {
        gmd_repeat r = gmd_repeat_at(m->best, at, &(gmd_repeat_search){.least = TURNS_LONG});
        bool is_long = r.turns >= TURNS_LONG;
        memset(is_counted + at, is_long, is_long ? r.turns * r.length : 1);
        at += is_long ? r.turns * r.length : 1;
    }
}
