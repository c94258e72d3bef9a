/* views.c - other shapes and other orders of the dimensions of a tensor, without memory of their
 * own. Facts: view, reshape, permute, expand and their derivatives in ATen/native/TensorShape.cpp
 * and derivatives.yaml of PyTorch 2.11. */
#include "gmd_layout.h"
#include "gmd_operations.h"
#include "reduce.h"

/* --- the order of dimensions ------------------------------------------------------------- */

/* The gradient is a view, too: recipe.number has the order. */
static void permute_backward(struct engine *engine, struct node *node, struct tensor **grads,
                             struct tensor **results)
{
    int back[SHAPE_MAX_DIMS] = {0};
    for (int i = 0; i < node->recipe.shape[0].dims; i++) {
        back[node->recipe.number[i]] = i;
    }
    results[0] = tensor_permuted(engine, grads[0], back);
}

struct tensor *op_permute(struct engine *engine, struct tensor *a, const int order[SHAPE_MAX_DIMS])
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_permuted(engine, a, order);
    struct node *node = node_over(engine, "PermuteBackward", permute_backward, a, result);
    for (int i = 0; node && i < a->shape.dims; i++) {
        node->recipe.number[i] = (uint64_t)order[i];
    }
    node_drop(engine, node);
    return result;
}

struct tensor *op_transpose(struct engine *engine, struct tensor *a, int first, int second)
{
    char text[128];
    if (!a) {
        return NULL;
    }
    if (first >= a->shape.dims || second >= a->shape.dims) {
        engine_misuse(engine, "transpose: a tensor of shape %s has no dimension %d",
                      shape_text(&a->shape, text), (first > second ? first : second) + 1);
        return NULL;
    }
    int order[SHAPE_MAX_DIMS] = {0};
    for (int i = 0; i < a->shape.dims; i++) {
        order[i] = i == first ? second : i == second ? first : i;
    }
    return op_permute(engine, a, order);
}

/* --- other shapes of the same elements --------------------------------------------------- */

/* Elements of a gradient that does not lie so are copied, as reshape() does. */
static void shape_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    const struct shape *shape = &node->recipe.shape[0];
    int64_t stride[SHAPE_MAX_DIMS];
    if (grads[0]->thing.refs == 1 &&
        !grads[0]->transposed) { /* nobody else holds this view of it */
        results[0] = tensor_keep(grads[0]);
        results[0]->shape = *shape;
        results[0]->is_view = true;
        shape_strides(shape, results[0]->stride);
    } else if (tensor_viewable(grads[0], shape, stride)) {
        results[0] = tensor_laid(engine, grads[0], shape, stride);
    } else {
        results[0] = tensor_new(engine, shape, grads[0]->dtype);
    }
}

static struct tensor *seen_as(struct engine *engine, const char *name, struct tensor *a,
                              const struct shape *shape, const int64_t stride[SHAPE_MAX_DIMS])
{
    struct tensor *result = tensor_laid(engine, a, shape, stride);
    node_drop(engine, node_over(engine, name, shape_backward, a, result));
    return result;
}

static bool same_count(struct engine *engine, const struct tensor *a, const struct shape *shape)
{
    char from[128], to[128];
    if (shape_count(&a->shape) == shape_count(shape)) {
        return true;
    }
    engine_misuse(engine, "a view of %s cannot have the shape %s: the number of elements differs",
                  shape_text(&a->shape, from), shape_text(shape, to));
    return false;
}

struct tensor *op_view_as_it_lies(struct engine *engine, struct tensor *a,
                                  const struct shape *shape)
{
    char from[128], to[128];
    int64_t stride[SHAPE_MAX_DIMS];
    if (!a || !same_count(engine, a, shape)) {
        return NULL;
    }
    if (!tensor_viewable(a, shape, stride)) {
        engine_misuse(
            engine,
            "this view of %s cannot be seen as %s, as it lies in memory; reshape() copies "
            "it",
            shape_text(&a->shape, from), shape_text(shape, to));
        return NULL;
    }
    return seen_as(engine, "ViewBackward", a, shape, stride);
}

struct tensor *op_reshape_or_copy(struct engine *engine, struct tensor *a,
                                  const struct shape *shape)
{
    int64_t stride[SHAPE_MAX_DIMS];
    if (!a || !same_count(engine, a, shape)) {
        return NULL;
    }
    struct tensor *rows =
        tensor_viewable(a, shape, stride) ? tensor_keep(a) : op_contiguous(engine, a);
    tensor_viewable(rows, shape, stride);
    struct tensor *result = seen_as(engine, "UnsafeViewBackward", rows, shape, stride);
    tensor_drop(engine, rows);
    return result;
}

struct tensor *op_unsqueeze(struct engine *engine, struct tensor *a, int dimension)
{
    int64_t stride[SHAPE_MAX_DIMS];
    if (!a) {
        return NULL;
    }
    struct shape shape = a->shape;
    tensor_layout(a, stride);
    for (int i = shape.dims; i > dimension; i--) {
        shape.size[i] = shape.size[i - 1];
        stride[i] = stride[i - 1];
    }
    stride[dimension] =
        dimension < shape.dims ? shape_product(shape.size[dimension], stride[dimension]) : 1;
    shape.size[dimension] = 1;
    shape.dims++;
    return seen_as(engine, "UnsqueezeBackward", a, &shape, stride);
}

struct tensor *op_squeeze(struct engine *engine, struct tensor *a, uint32_t dimensions)
{
    int64_t stride[SHAPE_MAX_DIMS];
    struct shape shape = {0, {0}};
    if (!a) {
        return NULL;
    }
    tensor_layout(a, stride);
    for (int i = 0; i < a->shape.dims; i++) {
        bool is_meant = dimensions == 0 || dimensions & (1u << i);
        if (!is_meant || a->shape.size[i] != 1) {
            stride[shape.dims] = stride[i];
            shape.size[shape.dims++] = a->shape.size[i];
        }
    }
    return seen_as(engine, "SqueezeBackward", a, &shape, stride);
}

/* --- expansion --------------------------------------------------------------------------- */

/* The gradient is summed over what was expanded. */
static void expand_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    const struct shape *shape = &node->recipe.shape[0];
    if (shape_count(shape) == shape_count(&grads[0]->shape)) {
        results[0] = tensor_view(engine, grads[0], shape);
    } else {
        results[0] = reduce_to(engine, &grads[0]->shape, shape, grads[0]->dtype);
    }
}

struct tensor *op_expand(struct engine *engine, struct tensor *a, const struct shape *shape)
{
    char from[128], to[128];
    int64_t own[SHAPE_MAX_DIMS], stride[SHAPE_MAX_DIMS] = {0};
    if (!a) {
        return NULL;
    }
    if (!shape_expands(&a->shape, shape)) {
        engine_misuse(engine, "a tensor of shape %s cannot be expanded to %s",
                      shape_text(&a->shape, from), shape_text(shape, to));
        return NULL;
    }
    int lead = shape->dims - a->shape.dims;
    tensor_layout(a, own);
    for (int i = lead; i < shape->dims; i++) {
        stride[i] = a->shape.size[i - lead] == 1 ? 0 : own[i - lead];
    }
    struct tensor *result = tensor_laid(engine, a, shape, stride);
    result->expanded |= shape_count(shape) != shape_count(&a->shape);
    node_drop(engine, node_over(engine, "ExpandBackward", expand_backward, a, result));
    return result;
}
