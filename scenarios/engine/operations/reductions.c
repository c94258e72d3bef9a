/* reductions.c - sums, means and largest elements, of all of a tensor or along dimensions. Facts:
 * ATen/native/ReduceOps.cpp, TensorCompare.cpp and FunctionsManual.cpp of PyTorch 2.11. */
#include "gmd_autocast.h"
#include "gmd_layout.h"
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

/* A gradient that has no graph itself leaves nothing to be recorded. */
static void recorded_by(struct node *node, backward_fn recorded)
{
    if (node) {
        node->recorded = recorded;
    }
}

static bool has_no_graph(struct engine *engine, const struct tensor *grad)
{
    if (tensor_tracked(engine, grad)) {
        engine_misuse(engine, "create_graph: sums and means are known here as the last operation");
        return false;
    }
    return true;
}

static void mean_recorded(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    if (has_no_graph(engine, grads[0])) {
        mean_backward(engine, node, grads, results);
    }
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
    struct node *node = node_over(engine, "MeanBackward", mean_backward, a, result);
    recorded_by(node, mean_recorded);
    node_drop(engine, node);
    return result;
}

enum { DIMENSIONS, KEEPDIM }; /* of recipe.number */

/* The gradient has no step along the dimensions that were summed. */
static struct tensor *expanded(struct engine *engine, struct tensor *grad,
                               const struct recipe *recipe)
{
    int64_t own[SHAPE_MAX_DIMS], stride[SHAPE_MAX_DIMS] = {0};
    uint32_t dimensions = (uint32_t)recipe->number[DIMENSIONS];
    int next = 0;
    tensor_layout(grad, own);
    for (int i = 0; i < recipe->shape[0].dims; i++) {
        bool is_kept = dimensions != 0 && !(dimensions & (1u << i));
        stride[i] = is_kept ? own[next] : 0;
        next += is_kept || recipe->number[KEEPDIM];
    }
    struct tensor *view = tensor_laid(engine, grad, &recipe->shape[0], stride);
    view->expanded = true;
    return view;
}

/* The gradient of a sum is expanded to the shape: a view without memory of its own. Where the sum
 * has more bits than its input, the view is converted, to a tensor of the full size. */
static void sum_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    if (grads[0]->dtype != node->recipe.dtype) {
        results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
        return;
    }
    results[0] = expanded(engine, grads[0], &node->recipe);
}

static void sum_recorded(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    if (has_no_graph(engine, grads[0])) {
        sum_backward(engine, node, grads, results);
    }
}

/* Whole numbers are summed in 64 bits, of which a copy is made for the call. */
static struct tensor *in_64_bits(struct engine *engine, const struct tensor *a)
{
    bool is_copied = !dtype_is_floating(a->dtype) && a->dtype != DTYPE_INT64;
    return is_copied ? tensor_new(engine, &a->shape, DTYPE_INT64) : NULL;
}

struct tensor *op_sum(struct engine *engine, struct tensor *a, uint32_t dimensions, bool keepdim)
{
    if (!a) {
        return NULL;
    }
    enum dtype dtype =
        dtype_is_floating(a->dtype) ? autocast_result(engine, "sum", a->dtype) : DTYPE_INT64;
    struct tensor *copy = in_64_bits(engine, a);
    struct tensor *result = reduce(engine, a, dimensions, keepdim, dtype);
    tensor_drop(engine, copy);
    struct node *node = node_over(engine, "SumBackward", sum_backward, a, result);
    recorded_by(node, sum_recorded);
    if (node) {
        node->recipe.number[DIMENSIONS] = dimensions;
        node->recipe.number[KEEPDIM] = keepdim;
    }
    node_drop(engine, node);
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
    struct tensor *numbers = in_64_bits(engine, mask);
    struct tensor *count = reduce_to(engine, shape, &scalar, DTYPE_INT64);
    tensor_drop(engine, numbers);
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
