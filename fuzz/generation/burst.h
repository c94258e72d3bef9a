/* burst.h - requests that are appended in a row: what many of one kind (many.c) and programs of
 * turns (turns.c) are made with. */
#ifndef BURST_H
#define BURST_H

#include "generator.h"

#define SHORT_NS UINT64_C(1000)
#define LONG_NS  UINT64_C(1000000000)

/* Appends requests until one could not be. */
typedef struct burst {
    gmd_generator *g;
    gmd_trace *trace;
    gmd_error *error;
    gmd_status status;
} burst;

static inline uint32_t below(burst *b, uint64_t bound)
{
    return (uint32_t)gmd_random_below(&b->g->random, bound);
}

static inline bool chance(burst *b, unsigned percent)
{
    return gmd_random_chance(&b->g->random, percent);
}

static inline void put(burst *b, gmd_request request)
{
    request.thread = b->g->thread;
    if (b->status == GMD_OK) {
        b->status = gmd_trace_append(b->trace, &request, b->error);
    }
}

/* One more than 2^least to 2^most, and up to a quarter of it more. */
static inline uint32_t draw_count(burst *b, uint32_t least, uint32_t most)
{
    uint32_t power = UINT32_C(1) << (least + below(b, most - least + 1));
    return power + 1 + below(b, power / 4);
}

static inline gmd_generated_block put_alloc(burst *b, uint64_t bytes, uint32_t stream,
                                            uint8_t device)
{
    gmd_generator *g = b->g;
    if (g->live_count == GMD_LIVE_MAX) {
        put(b, generator_free(g, 0));
    }
    put(b, generator_alloc(g, bytes, stream, device));
    return g->live[g->live_count - 1];
}

/* False: it is not live any more. */
static inline bool put_free(burst *b, uint32_t block)
{
    for (uint32_t i = b->g->live_count; i-- > 0;) {
        if (b->g->live[i].block == block) {
            put(b, generator_free(b->g, i));
            return true;
        }
    }
    return false;
}

static inline void put_use(burst *b, const gmd_generated_block *of, uint32_t stream, uint64_t ns)
{
    put(b, (gmd_request){.op = GMD_OP_USE,
                         .block = of->block,
                         .device = of->device,
                         .stream = stream,
                         .duration_ns = ns});
}

static inline bool is_left_out(const burst *b, gmd_op op)
{
    return b->g->space->without_ops >> op & 1;
}

static inline void put_advance(burst *b, uint64_t ns)
{
    put(b, (gmd_request){.op = GMD_OP_ADVANCE, .duration_ns = ns});
}

/* False: no pool allows it here. */
static inline bool put_on_pool(burst *b, gmd_op op, uint8_t device, uint32_t pool, uint32_t stream)
{
    gmd_request r = {.op = (uint8_t)op, .device = device, .pool = pool, .stream = stream};
    if (gmd_pool_state_note(&b->g->pools, &r)) {
        return false;
    }
    put(b, r);
    b->g->pool_count = pool == b->g->pool_count ? pool + 1 : b->g->pool_count;
    return true;
}

/* Whichever pool is open on the device is ended, the capture into it as well. */
static inline void end_open_pool(burst *b, uint8_t device)
{
    const gmd_pool_state *pools = &b->g->pools;
    uint8_t capturing = pools->capturing;
    if (capturing) {
        uint32_t pool = pools->open[capturing - 1] - 1U;
        put_on_pool(b, GMD_OP_END_CAPTURE, capturing - 1, pool, 0);
    }
    if (pools->open[device]) {
        put_on_pool(b, GMD_OP_END_POOL, device, pools->open[device] - 1U, 0);
    }
}

#endif
