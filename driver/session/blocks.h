/* blocks.h - the blocks of a run, by their number in the trace, and what of them is live. */
#ifndef GMD_BLOCKS_H
#define GMD_BLOCKS_H

#include "gmd_oracle.h"
#include "gmd_streams.h"

typedef struct session_block {
    gmd_live_block live; /* address 0: not live */
    stream_uses uses;
    uint32_t last_uses; /* its list (uses.h); simulated device only */
    bool was_used;      /* by work that is not captured */
    bool is_orphan;     /* its stream was destroyed: nothing can be ordered before its next work */
    uint64_t mark;      /* that its work leaves in it; 0: its contents are not followed */
    bool is_marked;     /* all over, from the start */
    bool is_for_graph;  /* graphs work in its memory, too, or may: what it holds is theirs to say */
} session_block;

typedef struct live_blocks {                                 /* zero-initialised: none */
    session_block *list;                                     /* by block id; owned */
    uint32_t capacity, end;                                  /* end: beyond all ids of this run */
    uint64_t count[GMD_MAX_DEVICES], bytes[GMD_MAX_DEVICES]; /* that are live */
    uint64_t empty_count[GMD_MAX_DEVICES];                   /* of these: of 0 B */
    uint64_t peak_bytes;                                     /* of the first device */
} live_blocks;

/* The place of a block; NULL: no host memory. Places move when there are more of them. */
session_block *live_blocks_at(live_blocks *blocks, uint32_t id);
/* There will be no more than `count` blocks: their places stay where they are. False: no host
 * memory. */
bool live_blocks_reserve(live_blocks *blocks, uint32_t count);

/* `place` is live from now on, and no longer. */
static inline void live_blocks_add(live_blocks *b, session_block *place, const session_block *block)
{
    int device = block->live.device;
    *place = *block;
    b->count[device]++;
    b->bytes[device] += block->live.bytes;
    b->empty_count[device] += !block->live.bytes;
    if (device == 0 && b->bytes[0] > b->peak_bytes) {
        b->peak_bytes = b->bytes[0];
    }
}

static inline void live_blocks_remove(live_blocks *b, session_block *place)
{
    b->count[place->live.device]--;
    b->bytes[place->live.device] -= place->live.bytes;
    b->empty_count[place->live.device] -= !place->live.bytes;
    place->live.address = 0;
}

/* Where a live block is; 0 when it is not live. */
static inline uint64_t live_blocks_address(const live_blocks *blocks, uint32_t id)
{
    return id < blocks->end ? blocks->list[id].live.address : 0;
}

/* The live block with that number; NULL: it is not live. */
static inline session_block *live_blocks_find(const live_blocks *b, uint32_t id)
{
    return id < b->end && b->list[id].live.address ? &b->list[id] : NULL;
}

/* The first live block from number *id on, which becomes the number after it; NULL: there is none.
 */
static inline session_block *live_blocks_next(const live_blocks *b, uint32_t *id)
{
    while (*id < b->end) {
        session_block *block = &b->list[(*id)++];
        if (block->live.address) {
            return block;
        }
    }
    return NULL;
}

/* The peak starts again from what is live. */
void live_blocks_restart_peak(live_blocks *blocks);
void live_blocks_clear(live_blocks *blocks); /* a new run: nothing was ever live */
void live_blocks_free(live_blocks *blocks);

/* For assertions: whether count and bytes are sums over the live blocks, each at the place of its
 * number. The sentence that does not hold; NULL: all does. */
const char *live_blocks_violation(const live_blocks *blocks);

#endif
