/* uses.h - the work that used each live block: the latest on each stream. */
#ifndef GMD_USES_H
#define GMD_USES_H

#include "gmd_oracle.h"

typedef struct gmd_use_node {
    gmd_use use;
    uint32_t next;
} gmd_use_node;

/* Zero-initialised: empty. The lists of all blocks share one array, so that nothing is allocated
 * once it is large enough. */
typedef struct gmd_uses {
    gmd_use_node *nodes; /* from 1: 0 ends a list */
    uint32_t used, capacity, spare;
    gmd_use *taken; /* what gmd_uses_take gives out */
    size_t taken_capacity;
} gmd_uses;

/* Adds a use to the list at `head`, in place of an earlier one on the same stream. False: the host
 * has no memory. */
bool gmd_uses_note(gmd_uses *uses, uint32_t *head, const gmd_use *use);

/* Empties the list and gives what was in it, valid until the next call; false: no host memory. */
bool gmd_uses_take(gmd_uses *uses, uint32_t *head, const gmd_use **taken, size_t *count);

void gmd_uses_clear(gmd_uses *uses); /* all lists are empty; their heads must be set to 0 */
void gmd_uses_free(gmd_uses *uses);

#endif
