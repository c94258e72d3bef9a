/* cast.c - conversions from one type of elements to another. */
#include "gmd_layout.h"
#include "gmd_operations.h"

static void cast_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    results[0] =
        tensor_elementwise(engine, &node->recipe.shape[0], node->recipe.dtype, &grads[0], 1);
}

struct tensor *op_cast(struct engine *engine, struct tensor *a, enum dtype dtype)
{
    if (!a || a->dtype == dtype) {
        return tensor_keep(a);
    }
    struct tensor *result = tensor_elementwise(engine, &a->shape, dtype, &a, 1);
    if (dtype_is_floating(dtype)) { /* whole numbers have no gradient */
        node_drop(engine, node_over(engine, "ToCopyBackward", cast_backward, a, result));
    }
    return result;
}
