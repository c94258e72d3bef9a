/* cast.c - conversions from one type of elements to another. */
#include "gmd_operations.h"

#include <string.h>

static void cast_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

struct tensor *op_cast(struct engine *engine, struct tensor *a, enum dtype dtype)
{
    if (!a || a->dtype == dtype) {
        return tensor_keep(a);
    }
    struct tensor *result = tensor_new(engine, &a->shape, dtype);
    result->transposed = a->transposed; /* conversions preserve the layout */
    memcpy(result->stride, a->stride, sizeof result->stride);
    if (dtype_is_floating(dtype)) { /* whole numbers have no gradient */
        node_drop(engine, node_over(engine, "ToCopyBackward", cast_backward, a, result));
    }
    return result;
}
