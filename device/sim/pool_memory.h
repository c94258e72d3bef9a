/* pool_memory.h - the memory of one stream-ordered pool: chunks of whole pages from the device, cut
 * into blocks. */
#ifndef GMD_SIM_POOL_MEMORY_H
#define GMD_SIM_POOL_MEMORY_H

#include "pool_blocks.h"

typedef struct pool {
    cudaMemPool_t handle; /* NULL: the slot is free */
    uint32_t number;
    int device;
    bool is_destroyed; /* what is live in it stays until it is freed */
    bool follows_events, is_opportunistic, adds_dependencies;
    uint64_t threshold, max_bytes;
    uint64_t reserved, reserved_high, used, used_high;
    uint32_t live_count;
    uint32_t whole_count; /* chunks of which nothing is in use */
    shelf_list shelves;
} pool;

/* A block of `size` > 0 bytes for work on `s` from now on: one that was freed, of a new chunk, or,
 * where there is none, one that was freed behind a wait. 0: none can be had. */
uint32_t pool_take(pool *p, stream *s, uint64_t size);
/* The host waits for all work that frees are behind. Host functions may run meanwhile. */
void pool_wait(pool *p);
/* A live block is free for work after `at`. */
void pool_put(pool *p, uint32_t slot, point at);

/* What is known to be free by now is for everybody. */
void pool_settle(pool *p);
/* Gives whole chunks back to the device until no more than `keep` bytes are reserved. */
void pool_give_back(pool *p, uint64_t keep);
/* All of it, in use or not. */
void pool_abandon(pool *p);

/* What does not hold of blocks, shelves and figures; NULL: all does. */
const char *pool_violation(pool *p);

#endif
