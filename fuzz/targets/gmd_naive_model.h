/* gmd_naive_model.h - PyTorch's algorithm on one device with default settings, on a plain array
 * that is searched from end to end: slow, and too simple to hide an error. Tests and
 * fuzz_differential hold an allocator against it.
 *
 * Blocks that other streams use and settings are not in it. Sizes: bytes. Thread safety: none. */
#ifndef GMD_NAIVE_MODEL_H
#define GMD_NAIVE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gmd_naive_block {
    uint64_t address, size, segment, segment_size;
    uint32_t stream;
    uint32_t pool; /* 0: the default one */
    bool is_small, is_live;
} gmd_naive_block;

#define GMD_NAIVE_ALL_STREAMS UINT32_MAX
#define GMD_NAIVE_POOLS       64 /* held at a time */

typedef struct gmd_naive_model {
    gmd_naive_block *blocks; /* of the caller: room for two for each request, and one */
    size_t count;
    uint64_t limit; /* of reserved memory: the fraction's, or what the device has */
    uint64_t reserved, ooms, retries;
    uint32_t open;     /* the pool that requests on these streams go to; 0: none is open */
    uint64_t streams;  /* as bits */
    bool is_capturing; /* they are captured: nothing goes back */
    /* Held pools whose cache is not given back. As graphs need it: those that had a request while
     * its stream was captured; and while such a pool is open, nothing goes back by emptying the
     * cache. */
    uint32_t kept[GMD_NAIVE_POOLS], kept_count;
    /* As PyTorch 2.11 has it: every held pool is kept, and while one is open a request gives
     * nothing back, nor does emptying the cache what the default pool has. */
    bool keeps_pools;
} gmd_naive_model;

typedef struct gmd_naive_answer {
    uint64_t address;     /* 0: refused */
    unsigned made, given; /* segments asked of the device and given back to it */
} gmd_naive_answer;

/* `placed`: where the device has put the segment, if the allocator asked for one. */
gmd_naive_answer gmd_naive_malloc(gmd_naive_model *model, uint64_t requested, uint32_t stream,
                                  uint64_t placed);

/* The address is that of a live block. */
void gmd_naive_free(gmd_naive_model *model, uint64_t address);

/* Gives back what is wholly free; how many segments. */
unsigned gmd_naive_empty_cache(gmd_naive_model *model);

/* Requests on the stream, a number below 64, or on GMD_NAIVE_ALL_STREAMS, go to the pool, a number
 * from 1. At most one is open. */
void gmd_naive_begin_pool(gmd_naive_model *model, uint32_t pool, uint32_t stream);
void gmd_naive_end_pool(gmd_naive_model *model);

/* The same, and the stream is captured; another one comes to the capture. Until the end of the pool
 * requests are made on captured streams only, and the cache is not emptied. */
void gmd_naive_begin_capture(gmd_naive_model *model, uint32_t pool, uint32_t stream);
void gmd_naive_join_capture(gmd_naive_model *model, uint32_t stream);

/* Nobody holds the pool any more. */
void gmd_naive_drop_pool(gmd_naive_model *model, uint32_t pool);

#endif
