/* cast.c - conversions from one type of elements to another. */
#include "gmd_operations.h"

static void cast_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                          gmd_tensor **results)
{
    (void)grads;
    results[0] = gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

gmd_tensor *gmd_op_cast(gmd_engine *engine, gmd_tensor *a, gmd_dtype dtype)
{
    if (!a || a->dtype == dtype) {
        return gmd_tensor_keep(a);
    }
    gmd_tensor *result = gmd_tensor_new(engine, &a->shape, dtype);
    result->transposed = a->transposed; /* conversions preserve the layout */
    if (gmd_dtype_is_floating(dtype)) { /* whole numbers have no gradient */
        gmd_node_drop(engine, gmd_node_over(engine, "ToCopyBackward", cast_backward, a, result));
    }
    return result;
}
