/* gmd_observer.h - what a looker-on is told of the tensors' memory while a scenario runs: which
 * blocks there are and what each is for. Nothing is asked of the engine, and nothing changes in it.
 */
#ifndef GMD_OBSERVER_H
#define GMD_OBSERVER_H

#include <stddef.h>

/* What memory is for, by rank: a storage is for the highest that was ever said of it. The names are
 * those of torch.profiler's memory timeline. */
typedef enum gmd_category {
    GMD_TEMPORARY,       /* lives within an operation, or nobody said what it is for */
    GMD_ACTIVATION,      /* the result of a recorded operation, or saved by one */
    GMD_INPUT,           /* made by the script: randn { ... } */
    GMD_GRADIENT,        /* the .grad of a tensor */
    GMD_OPTIMIZER_STATE, /* momentum, the moments of Adam */
    GMD_PARAMETER,       /* a module's parameters and buffers, and other leaves that are trained */
    GMD_WORKSPACE,       /* what cuBLAS keeps */
    GMD_CATEGORIES
} gmd_category;

struct gmd_storage;
struct gmd_tensor;

typedef struct gmd_observer {
    void *context;
    /* A storage got its block; right after the request. */
    void (*made)(void *context, struct gmd_storage *storage);
    /* Its block is given back; right before the request. */
    void (*gone)(void *context, struct gmd_storage *storage);
    /* A tensor over a storage: the first one tells the shape that the memory was meant for. */
    void (*shaped)(void *context, const struct gmd_tensor *tensor);
} gmd_observer;

#endif
