/* gmd_category.h - what the memory of a tensor is for. */
#ifndef GMD_CATEGORY_H
#define GMD_CATEGORY_H

#include <stdint.h>

/* What memory is for, by rank: a storage belongs to the highest category that it was ever marked
 * with. The names are those of torch.profiler's memory timeline. */
typedef enum gmd_category {
    GMD_TEMPORARY,       /* lives within an operation, or was never marked */
    GMD_ACTIVATION,      /* the result of a recorded operation, or saved by one */
    GMD_INPUT,           /* made by the script: randn { ... } */
    GMD_GRADIENT,        /* the .grad of a tensor */
    GMD_OPTIMIZER_STATE, /* momentum, the moments of Adam */
    GMD_PARAMETER,       /* a module's parameters and buffers, and other leaves that are trained */
    GMD_WORKSPACE,       /* what cuBLAS keeps */
    GMD_CATEGORIES,
    GMD_CATEGORY_UNKNOWN = GMD_CATEGORIES /* of a recorded block: it does not follow */
} gmd_category;

const char *gmd_category_name(uint32_t category); /* "optimizer_state"; "unknown" */

#endif
