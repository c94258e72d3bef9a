/* guarded_block.h - one block of the program with its red zones:
 *
 *     memory           address       address + size          memory + total
 *     | zone in front  | the program's | zone behind ........ |
 */
#ifndef GMD_GUARDED_BLOCK_H
#define GMD_GUARDED_BLOCK_H

#include "mappings.h"

#include "gmd_cuda.h"

#include <stdbool.h>
#include <stdint.h>

enum { GUARDED_STREAMS = 8 }; /* recorded ones that are kept by name */

typedef struct guarded_block {
    struct guarded_block *next; /* in the quarantine: the next younger one */
    uint64_t address, size;     /* what the program asked for */
    uint64_t memory, total;     /* what the allocator gave */
    int device;
    uint32_t recorded_count;               /* of record_stream: may be more than are kept */
    cudaStream_t stream;                   /* of the allocation */
    uint32_t allocated_stack, freed_stack; /* of gmd_keep_stack */
    uint64_t number;                       /* of its allocation, from 1 */
    uint64_t freed_ns;                     /* on the clock; 0: live */
    bool is_plain;  /* allocated in a capture: no zones, and never filled, for graphs replay into it
                     */
    bool is_pooled; /* requests went to a private pool: it may be a part of that */
    bool has_lost_stream;      /* one of its streams was destroyed: nothing may be queued there */
    bool is_filled;            /* freed, and holds the pattern once `filled` is over */
    mapping mapped;            /* memory 0: the allocator's memory, or it was taken away */
    struct order_block *order; /* of happens-before; NULL: off */
    cudaEvent_t filled;        /* NULL: it was filled on its own stream */
    cudaStream_t recorded[GUARDED_STREAMS]; /* the last, for most blocks have none */
} guarded_block;

#endif
