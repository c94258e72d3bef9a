/* reductions.c - sums, means and largest elements, of all of a tensor or along dimensions. Facts:
 * ATen/native/ReduceOps.cpp, TensorCompare.cpp and FunctionsManual.cpp of PyTorch 2.11. */
#include "gmd_operations.h"
#include "reduce.h"

/* The shape with the dimensions reduced to 1; 0 of them: all. */
static struct shape reduced(const struct shape *shape, uint32_t dimensions)
{
    struct shape kept = *shape;
    for (int i = 0; i < shape->dims; i++) {
        kept.size[i] = dimensions == 0 || dimensions & (1u << i) ? 1 : shape->size[i];
    }
    return kept;
}

static void squeeze(struct tensor *tensor, uint32_t dimensions)
{
    struct shape rest = {0, {0}};
    for (int i = 0; i < tensor->shape.dims; i++) {
        if (dimensions != 0 && !(dimensions & (1u << i))) {
            rest.size[rest.dims++] = tensor->shape.size[i];
        }
    }
    tensor->shape = rest;
    shape_strides(&tensor->shape, tensor->stride);
}

static struct tensor *reduce(struct engine *engine, struct tensor *a, uint32_t dimensions,
                             bool keepdim, enum dtype dtype)
{
    struct shape kept = reduced(&a->shape, dimensions);
    struct tensor *result = reduce_to(engine, &a->shape, &kept, dtype);
    if (!keepdim) {
        squeeze(result, dimensions);
    }
    return result;
}

/* --- mean and sum ------------------------------------------------------------------------ */

/* The gradient is expanded and divided. */
static void mean_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

struct tensor *op_mean(struct engine *engine, struct tensor *a, uint32_t dimensions, bool keepdim)
{
    if (!a) {
        return NULL;
    }
    if (!dtype_is_floating(a->dtype)) {
        engine_misuse(engine, "the mean is of floating numbers, and this tensor is %s",
                      dtype_name(a->dtype));
        return NULL;
    }
    struct tensor *result = reduce(engine, a, dimensions, keepdim, a->dtype);
    node_drop(engine, node_over(engine, "MeanBackward", mean_backward, a, result));
    return result;
}

/* The gradient of a sum is expanded to the shape: a view without memory of its own. */
static void sum_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    results[0] = tensor_view(engine, grads[0], &node->recipe.shape[0]);
    results[0]->expanded = true;
}

/* Whole numbers are summed in 64 bits. */
struct tensor *op_sum(struct engine *engine, struct tensor *a, uint32_t dimensions, bool keepdim)
{
    if (!a) {
        return NULL;
    }
    enum dtype dtype = dtype_is_floating(a->dtype) ? a->dtype : DTYPE_INT64;
    struct tensor *result = reduce(engine, a, dimensions, keepdim, dtype);
    node_drop(engine, node_over(engine, "SumBackward", sum_backward, a, result));
    return result;
}

/* --- the largest ------------------------------------------------------------------------- */

/* mask * (grad / mask.sum()), where the mask has the elements that are as large, or not a number.
 */
static void max_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    static const struct shape scalar = {0, {0}};
    const struct shape *shape = &node->recipe.shape[0];
    struct tensor *is_nan = tensor_new(engine, shape, DTYPE_BOOL);
    struct tensor *value_is_nan = tensor_new(engine, &scalar, DTYPE_BOOL);
    struct tensor *mask = tensor_new(engine, shape, DTYPE_BOOL);
    struct tensor *count = reduce_to(engine, shape, &scalar, DTYPE_INT64);
    struct tensor *share = tensor_like(engine, grads[0]);
    results[0] = tensor_new(engine, shape, node->recipe.dtype);
    tensor_drop(engine, share);
    tensor_drop(engine, count);
    tensor_drop(engine, mask);
    tensor_drop(engine, value_is_nan);
    tensor_drop(engine, is_nan);
}

static bool has_elements(struct engine *engine, const struct tensor *a, int64_t count)
{
    char text[128];
    if (count > 0) {
        return true;
    }
    engine_misuse(engine, "max: there is no largest of no elements; the tensor is %s",
                  shape_text(&a->shape, text));
    return false;
}

struct tensor *op_max(struct engine *engine, struct tensor *a)
{
    if (!a || !has_elements(engine, a, shape_count(&a->shape) > 0)) {
        return NULL;
    }
    struct tensor *result = reduce(engine, a, 0, false, a->dtype);
    struct node *node = node_over(engine, "MaxBackward", max_backward, a, result);
    if (node) {
        node_save(node, a);
        node_save(node, result);
    }
    node_drop(engine, node);
    return result;
}

/* Zeros, into which the gradient is scattered. */
static void max_along_backward(struct engine *engine, struct node *node, struct tensor **grads,
                               struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

struct tensor *op_max_along(struct engine *engine, struct tensor *a, int dimension, bool keepdim,
                            struct tensor **indices)
{
    if (!a || !has_elements(engine, a, a->shape.size[dimension])) {
        return NULL;
    }
    uint32_t bit = 1u << dimension;
    struct shape kept = reduced(&a->shape, bit);
    struct tensor *values = tensor_new(engine, &kept, a->dtype);
    *indices = tensor_new(engine, &kept, DTYPE_INT64);
    reduce_scratch_to(engine, &a->shape, &kept, 2 * sizeof(int64_t)); /* values with indices */
    if (!keepdim) {
        squeeze(values, bit);
        squeeze(*indices, bit);
    }
    node_over_saving(engine, "MaxBackward", max_along_backward, a, values, *indices);
    return values;
}
