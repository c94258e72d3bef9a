/* retention_groups.h - surviving tensors put together by the way in which they are held. */
#ifndef GMD_REPORTS_RETENTION_GROUPS_H
#define GMD_REPORTS_RETENTION_GROUPS_H

#include "gmd_inspection.h"

/* Tensors that are held in the same way. */
typedef struct retention_group {
    char pattern[512]; /* "losses[*] -> MulBackward -> saved[*]" */
    uint32_t row;      /* the first of them */
    uint32_t holder;   /* gmd_tensor_holder */
    uint32_t line; /* of the script, where all of them were allocated; 0: at several, or unknown */
    uint64_t tensors, used;
    uint64_t rounding; /* of `used`: beyond what was asked for */
} retention_group;

/* The groups, the largest first, for the caller to free; *count 0 and NULL: there are none, or no
 * host memory. `by_shape`: tensors of different shapes and types, or over the blocks of others, are
 * apart. */
retention_group *retention_groups_of(const gmd_inspection *inspection, bool by_shape,
                                     size_t *count);

/* "losses[*]", or the path itself where it is a single tensor. */
const char *retention_group_name(const gmd_inspection *inspection, const retention_group *group,
                                 char *text, size_t size);

#endif
