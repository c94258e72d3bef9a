/* gmd_tensor.h - tensors: a shape and a type over a storage. */
#ifndef GMD_TENSOR_H
#define GMD_TENSOR_H

#include "gmd_shape.h"
#include "gmd_storage.h"

struct tensor;

/* Is told when a leaf's gradient has arrived, in each backward pass. */
struct gradient_hook {
    void (*arrived)(struct engine *engine, struct gradient_hook *hook);
};

struct tensor {
    struct thing thing;
    struct storage *storage;
    struct shape shape;
    enum dtype dtype;
    /* In elements, where `transposed`; else it lies row by row. Row by row with `transposed`: it
     * lies in some other way. */
    int64_t stride[SHAPE_MAX_DIMS];
    bool requires_grad;         /* as a leaf; results of operations have grad_fn instead */
    bool expanded;              /* a broadcast view: several elements share memory */
    bool transposed;            /* a view that kernels must copy before they use it */
    bool is_shard;              /* this rank's rows of a parameter */
    bool is_view;               /* keeps its base, so that nobody adds into its memory in place */
    struct node *grad_fn;       /* NULL: a leaf */
    uint32_t output;            /* which of grad_fn's outputs it is */
    struct tensor *grad;        /* NULL: None */
    struct node *accumulator;   /* borrowed: the node that adds into .grad, while one exists */
    uint64_t walk;              /* over modules, the last that visited it as a parameter */
    struct gradient_hook *hook; /* borrowed; NULL: nobody is told */
};

extern const struct thing_class tensor_class;

static inline struct thing *tensor_thing(struct tensor *tensor)
{
    return tensor ? &tensor->thing : NULL;
}
static inline struct tensor *tensor_keep(struct tensor *tensor)
{
    if (tensor) {
        tensor->thing.refs++;
    }
    return tensor;
}
static inline void tensor_drop(struct engine *engine, struct tensor *tensor)
{
    thing_drop(engine, tensor_thing(tensor));
}

uint64_t tensor_bytes(const struct tensor *tensor); /* of its elements */

/* A new tensor over new memory. */
struct tensor *tensor_new(struct engine *engine, const struct shape *shape, enum dtype dtype);
/* A new tensor over memory that is there, outside the graph. */
struct tensor *tensor_of_storage(struct engine *engine, struct storage *storage,
                                 const struct shape *shape, enum dtype dtype);
struct tensor *tensor_like(struct engine *engine, const struct tensor *model);
/* A new tensor over the same storage, outside the graph. */
struct tensor *tensor_alias(struct engine *engine, struct tensor *tensor);
struct tensor *tensor_view(struct engine *engine, struct tensor *tensor, const struct shape *shape);

/* Whether operations on it are recorded now. */
bool tensor_tracked(const struct engine *engine, const struct tensor *tensor);

#endif
