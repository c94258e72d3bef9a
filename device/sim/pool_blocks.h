/* pool_blocks.h - the blocks that the memory of stream-ordered pools is cut into, and the shelves
 * on which the free ones of a pool lie.
 *
 * A shelf holds what one stream freed: where it is free lies in that stream's work. Shelf 0 of a
 * pool holds what everybody may have, the host knowing that all work on it is over. On a shelf
 * blocks are ordered twice: by size, then address (a treap, whose priorities are a hash of the
 * address), and by when they were freed, so that what is over by now is at the front. */
#ifndef GMD_SIM_POOL_BLOCKS_H
#define GMD_SIM_POOL_BLOCKS_H

#include "point.h"

typedef struct block {
    uint64_t address, span; /* span 0: the slot is free */
    uint64_t size;          /* of the live owner */
    point freed_at;         /* of a free block: on its shelf's stream. Its past is kept */
    uint32_t pool;
    bool is_live;
    uint32_t below, above; /* neighbours in the chunk; 0: none */
    uint32_t shelf;
    uint32_t left, right;  /* on the shelf, by size */
    uint32_t older, newer; /* by time; free slots of the table are linked by `newer` */
} block;

typedef struct shelf {
    stream *on; /* NULL: shelf 0 */
    uint32_t root, oldest, newest;
} shelf;

#define SHELF_DONE 0u
#define SHELF_NONE UINT32_MAX

typedef struct shelf_list {
    shelf done;               /* number 0 */
    shelf *of_streams;        /* from number 1 on; empty ones are used again */
    uint32_t count, capacity; /* of them */
} shelf_list;

/* Blocks by number, never 0. Pointers are valid until the next block_new. */
uint32_t block_new(uint64_t address, uint64_t span, uint32_t pool); /* 0: no host memory */
block *block_at(uint32_t slot);
void block_delete(uint32_t slot);
uint32_t block_limit(void); /* every number is below */
void blocks_reset(void);

static inline shelf *shelf_at(shelf_list *list, uint32_t number)
{
    return number == SHELF_DONE ? &list->done : &list->of_streams[number - 1];
}

/* The number of a stream's shelf, or of NULL's. SHELF_NONE: the host has no memory for one more. */
uint32_t shelf_open(shelf_list *list, stream *on);
void shelves_clear(shelf_list *list); /* nothing is on any */

/* Puts a block on a shelf as its newest, or at the place in time of `after`, which lies there. */
void shelf_put(shelf_list *list, uint32_t number, uint32_t slot);
void shelf_put_after(shelf_list *list, uint32_t slot, uint32_t after);
void shelf_take(shelf_list *list, uint32_t slot); /* off the shelf that it is on */

/* The first block at or after (span, address) by size; 0: none. */
uint32_t shelf_lower_bound(const shelf *from, uint64_t span, uint64_t address);

/* Bytes of the chunk that begins with this block, in use or not; 0: it begins with another. */
uint64_t chunk_span(uint32_t slot);
/* The range begins in this block and ends in its chunk. */
bool chunk_has(uint32_t slot, uint64_t address, uint64_t size);

/* What does not hold of a shelf; NULL: all does. Adds the number of blocks on it. */
const char *shelf_violation(shelf_list *list, uint32_t number, uint32_t *count);

#endif
