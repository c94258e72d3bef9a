/* waiting.h - freed blocks that may still wait for other streams' work, as far as the requests
 * tell: from its free until the host has waited, after the free, for each stream that the block was
 * used on. An allocator that promises GMD_PROMISE_PROMPT counts no other freed block as active. */
#ifndef GMD_WAITING_H
#define GMD_WAITING_H

#include "gmd_oracle.h"

#define WAITING_MAX 1024

typedef struct waiting_block {
    uint64_t bytes, streams; /* a set; the last bit: those of higher numbers */
    int device;
} waiting_block;

/* Zero-initialised before the first request. */
typedef struct waiting_blocks {
    waiting_block blocks[WAITING_MAX];
    size_t count;
    uint64_t bytes[GMD_MAX_DEVICES]; /* of those blocks */
    uint64_t next_request;
    bool is_lost; /* what waits is not known any more, for the rest of the run */
} waiting_blocks;

/* After each request. True: more is active than what is allocated and what may wait, by `excess`
 * bytes, after an allocation, which had to look. */
bool waiting_after(waiting_blocks *waiting, const gmd_view *view, uint64_t *excess);

#endif
