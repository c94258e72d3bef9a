/* gmd_tensor.h - tensors: a shape and a type over a storage. */
#ifndef GMD_TENSOR_H
#define GMD_TENSOR_H

#include "gmd_shape.h"
#include "gmd_storage.h"

typedef struct gmd_tensor gmd_tensor;

struct gmd_tensor {
    gmd_thing thing;
    gmd_storage *storage;
    gmd_shape shape;
    gmd_dtype dtype;
    bool requires_grad;           /* as a leaf; results of operations have grad_fn instead */
    bool expanded;                /* a broadcast view: several elements share memory */
    bool transposed;              /* a view that kernels must copy before they use it */
    bool is_view;                 /* keeps its base, so that nobody adds into its memory in place */
    struct gmd_node *grad_fn;     /* NULL: a leaf */
    uint32_t output;              /* which of grad_fn's outputs it is */
    struct gmd_tensor *grad;      /* NULL: None */
    struct gmd_node *accumulator; /* borrowed: the node that adds into .grad, while one exists */
};

extern const gmd_thing_class gmd_tensor_class;

static inline gmd_thing *gmd_thing_of(gmd_tensor *tensor)
{
    return tensor ? &tensor->thing : NULL;
}
static inline gmd_tensor *gmd_tensor_keep(gmd_tensor *tensor)
{
    if (tensor) {
        tensor->thing.refs++;
    }
    return tensor;
}
static inline void gmd_tensor_drop(gmd_engine *engine, gmd_tensor *tensor)
{
    gmd_thing_drop(engine, gmd_thing_of(tensor));
}

uint64_t gmd_tensor_bytes(const gmd_tensor *tensor); /* of its elements */

/* A new tensor over new memory. */
gmd_tensor *gmd_tensor_new(gmd_engine *engine, const gmd_shape *shape, gmd_dtype dtype);
gmd_tensor *gmd_tensor_like(gmd_engine *engine, const gmd_tensor *model);
/* A new tensor over the same storage, outside the graph. */
gmd_tensor *gmd_tensor_alias(gmd_engine *engine, gmd_tensor *tensor);
gmd_tensor *gmd_tensor_view(gmd_engine *engine, gmd_tensor *tensor, const gmd_shape *shape);

/* Whether operations on it are recorded now. */
bool gmd_tensor_tracked(const gmd_engine *engine, const gmd_tensor *tensor);

#endif
