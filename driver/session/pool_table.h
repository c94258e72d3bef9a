/* pool_table.h - which private pools there are, and which requests go to them. */
#ifndef GMD_POOL_TABLE_H
#define GMD_POOL_TABLE_H

#include "captures.h"
#include "gmd_pool_state.h"

typedef struct accepted_streams {
    cudaStream_t stream;
    bool takes_all;
    const capture_set *captures; /* the one that opened the pool; NULL: none did */
} accepted_streams;

/* What the allocator keeps of a pool, and which blocks were live in it then. */
typedef struct kept_pool {
    gmd_checkpoint *made; /* NULL: there is none */
    struct session_block *blocks;
    size_t count;
} kept_pool;

typedef struct pool_table {
    bool is_used;  /* in this run */
    uint32_t made; /* so far, in all runs of this process */
    gmd_pool_state state;
    uint32_t serials[GMD_MAX_DEVICES][GMD_MAX_POOLS]; /* of those that are held */
    accepted_streams accepted[GMD_MAX_DEVICES];       /* of each device's open pool */
    kept_pool kept[GMD_MAX_DEVICES][GMD_MAX_POOLS];   /* checkpoints.h */
    bool has_missed_checkpoints;                      /* a note says so */
    uint64_t lent[GMD_MAX_DEVICES];       /* bit p: pool p has, or had, GMD_POOL_USE_ON_OOM */
    bool has_options, has_missed_options; /* a pool of this run has some; a note says that they are
                                             left out */
    uint32_t returned;                    /* blocks that a restore has brought back, in this run */
} pool_table;

/* The serial number of the device's open pool (gmd_pool_number); 0: none is open. */
static inline uint32_t pool_table_open(const pool_table *pools, int device)
{
    uint8_t open = pools->state.open[device];
    return open ? pools->serials[device][open - 1] : 0;
}

/* A graph works with blocks that were allocated while it was captured, whose memory the pool keeps;
 * other work keeps away from them. Whether this is such a block, of the capture under way. */
static inline bool pool_table_is_of_graph(const pool_table *pools, const capture_set *captures,
                                          const gmd_live_block *b)
{
    return captures->is_under_way && b->pool && b->device == captures->device &&
           b->born > captures->began && b->pool == pool_table_open(pools, b->device);
}

/* Which pool a request on that stream goes to: its serial number; 0: the default one. */
static inline uint32_t pool_table_of(const pool_table *pools, int device, cudaStream_t stream)
{
    if (!pools->is_used || !pools->state.open[device]) {
        return 0;
    }
    const accepted_streams *a = &pools->accepted[device];
    bool is_meant = a->takes_all || a->stream == stream ||
                    (a->captures && captures_have_joined(a->captures, stream));
    return is_meant ? pool_table_open(pools, device) : 0;
}

/* Nobody holds a pool; serial numbers go on. */
void pool_table_clear(pool_table *pools);

/* Whether a pool of that serial number, which is not 0, was ever made. */
static inline bool pool_table_has_made(const pool_table *pools, uint32_t serial)
{
    return (serial - 1) / GMD_MAX_POOLS < pools->made;
}

/* For assertions, of what requests left: the sentence that does not hold; NULL: all does. */
const char *pool_table_violation(const pool_table *pools);

#endif
