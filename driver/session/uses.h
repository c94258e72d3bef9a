/* uses.h - the work that used each live block: the latest on each stream. */
#ifndef GMD_USES_H
#define GMD_USES_H

#include "gmd_oracle.h"

typedef struct use_node {
    gmd_use use;
    uint32_t next;
} use_node;

/* Zero-initialised: empty. The lists of all blocks share one array, so that nothing is allocated
 * once it is large enough. */
typedef struct block_uses {
    use_node *nodes; /* from 1: 0 ends a list */
    uint32_t used, capacity, spare;
    gmd_use *taken; /* what uses_take gives out */
    size_t taken_capacity;
} block_uses;

/* Adds a use to the list at `head`, in place of an earlier one on the same stream. False: the host
 * has no memory. */
bool uses_note(block_uses *uses, uint32_t *head, const gmd_use *use);

/* Empties the list and gives what was in it, valid until the next call; false: no host memory. */
bool uses_take(block_uses *uses, uint32_t *head, const gmd_use **taken, size_t *count);

void uses_clear(block_uses *uses); /* all lists are empty; their heads must be set to 0 */
void uses_free(block_uses *uses);

/* For assertions: each node is in one list, that of a block or the spare ones. The lists of blocks
 * are walked one after the other, and then all is added up. Both give the sentence that does not
 * hold; NULL: all does. */
typedef struct uses_walk { /* zero-initialised: nothing was walked yet */
    uint64_t count, sum;   /* of nodes, and of their places */
} uses_walk;

const char *uses_list_violation(const block_uses *uses, uint32_t head, uses_walk *walk);
const char *uses_violation(const block_uses *uses, uses_walk walk);

#endif
