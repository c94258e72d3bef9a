/* order_types.h - what is told to an order (order.h), and what it tells. */
#ifndef ORDER_TYPES_H
#define ORDER_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct order order;
typedef struct order_block order_block; /* a block, from its allocation until nobody refers to it */

/* A stream as CUDA names it. */
typedef struct order_stream {
    int device;
    uint64_t handle; /* cudaStream_t; 0 and 1: the legacy default stream of the device;
                        2: the thread's default stream */
    uint64_t thread; /* for handle 2 only: any number that tells threads apart */
} order_stream;

/* A piece of work that uses a block. */
typedef struct order_work {
    const char
        *what; /* the kernel's name, "copy", "graph": kept as it is; it must outlive the order */
    uint64_t place;  /* the caller's, passed on: a stack; 0: none was taken */
    uint64_t number; /* counts the work that the order was told of, from 1: the order's, not the
                        caller's */
} order_work;

typedef struct order_use {
    order_block *block;
    bool is_certain; /* false: the pointer was found where something stale may stand */
} order_use;

typedef enum order_kind {
    ORDER_FREED_EARLY,  /* freed while work on another stream could still use it: not recorded, not
                           ordered; and `taker` could have been given the memory */
    ORDER_REUSED_EARLY, /* `taker` was given memory of it, and uses it before the order is made */
    ORDER_USED_AFTER_FREE /* work that was queued after the free has a pointer into it */
} order_kind;

/* A block, as a finding tells of it. */
typedef struct order_subject {
    uint64_t address, bytes;
    order_stream stream;             /* the allocation's */
    uint64_t allocated_at, freed_at; /* places, as given; freed_at 0: it is not freed */
    uint64_t serial;                 /* counts blocks from 1 */
} order_subject;

typedef struct order_finding {
    order_kind kind;
    bool is_certain; /* stands alone. False: it rests on a pointer that may be stale, and is worth a
                        report only together with changed bytes */
    bool is_captured; /* within one graph: nothing in the graph makes the order */
    order_subject block;
    order_work use; /* of `block`: the one that was not waited for, or came after the free */
    order_stream use_stream;
    order_subject taker; /* FREED_EARLY and REUSED_EARLY: who could have had, or has, the memory */
    order_work taker_use;
    order_stream taker_stream;
} order_finding;

typedef struct order_settings {
    void (*found)(void *context, const order_finding *finding); /* the finding is valid within it */
    void *context;
} order_settings;

typedef struct order_statistics {
    uint64_t blocks, works, uses, foreign_uses; /* foreign: on another stream than the block's */
    uint64_t findings;
    uint64_t dropped;     /* notes that were not kept: no host memory, or a bound was reached */
    uint64_t live_blocks; /* order_blocks that exist now */
    uint32_t streams;     /* whose clocks are kept now */
} order_statistics;

#endif
