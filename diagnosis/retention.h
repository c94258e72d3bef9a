/* retention.h - what lives longer than its iteration: the blocks of one line of requests (one
 * stack; without stacks, one size), and how many bytes of them are there at the end of each
 * iteration. */
#ifndef GMD_DIAGNOSIS_RETENTION_H
#define GMD_DIAGNOSIS_RETENTION_H

#include "gmd_facts.h"

typedef struct retained_group {
    uint32_t stack;         /* 0: no frames were recorded */
    uint64_t requested;     /* of each block, where there is no stack; else 0 */
    uint32_t frame;         /* the user's line; GMD_NO_PLACE */
    uint64_t kept;          /* bytes of blocks that outlived the iteration after theirs */
    uint64_t most;          /* bytes at the end of an iteration, where it was most */
    uint32_t most_at;       /* the iteration */
    int64_t growth;         /* bytes by which the end of one iteration has more than that of the one
                               before, the median after warm-up */
    uint32_t rises, falls;  /* ends of iterations with more, with less than the one before */
    uint64_t largest_fall;  /* bytes, before the last iteration */
    uint32_t freed_in;      /* the user's line in which most blocks were freed that had outlived the
                               iteration after theirs; GMD_NO_PLACE */
    uint32_t freed_percent; /* how many of them were freed there */
} retained_group;

typedef struct retention {
    retained_group *groups; /* most kept bytes first */
    size_t count;
} retention;

/* `kept` is empty where the iterations are not known. */
gmd_status retention_find(retention *kept, const gmd_facts *facts, gmd_error *error);
void retention_free(retention *kept);

#endif
