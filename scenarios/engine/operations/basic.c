/* basic.c - elementwise operations, reductions and views. */
#include "gmd_operations.h"
#include "reduce.h"

static gmd_tensor *new_grad(gmd_engine *engine, const gmd_node *node)
{
    return gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

/* The derivative has the input's shape and its own memory. */
static void elementwise_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                                 gmd_tensor **results)
{
    (void)grads;
    results[0] = new_grad(engine, node);
}

static gmd_tensor *scaled(gmd_engine *engine, gmd_tensor *a, gmd_tensor *result)
{
    gmd_node_drop(engine, gmd_node_over(engine, "MulBackward", elementwise_backward, a, result));
    return result;
}

gmd_tensor *gmd_op_scale(gmd_engine *engine, gmd_tensor *a)
{
    return a ? scaled(engine, a, gmd_tensor_like(engine, a)) : NULL;
}

gmd_tensor *gmd_op_scale_in_place(gmd_engine *engine, gmd_tensor *a)
{
    return scaled(engine, a, gmd_tensor_alias(engine, a));
}

/* grad * (2 * a^1): the power and its double are temporaries. */
static void square_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                            gmd_tensor **results)
{
    (void)grads;
    gmd_tensor *power = new_grad(engine, node);
    gmd_tensor *doubled = new_grad(engine, node);
    results[0] = new_grad(engine, node);
    gmd_tensor_drop(engine, doubled);
    gmd_tensor_drop(engine, power);
}

gmd_tensor *gmd_op_square(gmd_engine *engine, gmd_tensor *a)
{
    if (!a) {
        return NULL;
    }
    gmd_tensor *result = gmd_tensor_like(engine, a);
    gmd_node *node = gmd_node_over(engine, "PowBackward", square_backward, a, result);
    if (node) {
        gmd_node_save(node, a);
    }
    gmd_node_drop(engine, node);
    return result;
}

gmd_tensor *gmd_op_relu(gmd_engine *engine, gmd_tensor *a, bool in_place)
{
    if (!a) {
        return NULL;
    }
    gmd_tensor *result = in_place ? gmd_tensor_alias(engine, a) : gmd_tensor_like(engine, a);
    gmd_node *node = gmd_node_over(engine, "ReluBackward", elementwise_backward, a, result);
    if (node) {
        gmd_node_save(node, result);
    }
    gmd_node_drop(engine, node);
    return result;
}

gmd_tensor *gmd_op_dropout(gmd_engine *engine, gmd_tensor *a)
{
    if (!a) {
        return NULL;
    }
    gmd_tensor *mask = gmd_tensor_new(engine, &a->shape, GMD_BOOL);
    gmd_tensor *result = gmd_tensor_like(engine, a);
    gmd_node *node =
        gmd_node_over(engine, "NativeDropoutBackward", elementwise_backward, a, result);
    if (node) {
        gmd_node_save(node, mask);
    }
    gmd_node_drop(engine, node);
    gmd_tensor_drop(engine, mask);
    return result;
}

static gmd_tensor *reduce(gmd_engine *engine, gmd_tensor *a)
{
    static const gmd_shape scalar = {0, {0}};
    return gmd_reduce_to(engine, &a->shape, &scalar, a->dtype);
}

gmd_tensor *gmd_op_mean(gmd_engine *engine, gmd_tensor *a)
{
    if (!a) {
        return NULL;
    }
    gmd_tensor *result = reduce(engine, a);
    gmd_node_drop(engine, gmd_node_over(engine, "MeanBackward", elementwise_backward, a, result));
    return result;
}

/* The gradient of a sum is the same number everywhere: a view of it, no memory. */
static void sum_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                         gmd_tensor **results)
{
    results[0] = gmd_tensor_view(engine, grads[0], &node->recipe.shape[0]);
    results[0]->expanded = true;
}

gmd_tensor *gmd_op_sum(gmd_engine *engine, gmd_tensor *a)
{
    if (!a) {
        return NULL;
    }
    gmd_tensor *result = reduce(engine, a);
    gmd_node_drop(engine, gmd_node_over(engine, "SumBackward", sum_backward, a, result));
    return result;
}

static void view_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                          gmd_tensor **results)
{
    if (grads[0]->thing.refs == 1) { /* the same memory; nobody else holds this view of it */
        results[0] = gmd_tensor_keep(grads[0]);
        results[0]->shape = node->recipe.shape[0];
        results[0]->is_view = true;
    } else {
        results[0] = gmd_tensor_view(engine, grads[0], &node->recipe.shape[0]);
    }
}

gmd_tensor *gmd_op_clone(gmd_engine *engine, gmd_tensor *a)
{
    if (!a) {
        return NULL;
    }
    gmd_tensor *result = gmd_tensor_like(engine, a);
    gmd_node_drop(engine, gmd_node_over(engine, "CloneBackward", view_backward, a, result));
    return result;
}

gmd_tensor *gmd_op_reshape(gmd_engine *engine, gmd_tensor *a, const gmd_shape *shape)
{
    char from[128], to[128];
    if (!a) {
        return NULL;
    }
    if (gmd_shape_count(&a->shape) != gmd_shape_count(shape)) {
        gmd_misuse(engine, "a view of %s cannot have the shape %s: the number of elements differs",
                   gmd_shape_text(&a->shape, from), gmd_shape_text(shape, to));
        return NULL;
    }
    gmd_tensor *result = gmd_tensor_view(engine, a, shape);
    gmd_node_drop(engine, gmd_node_over(engine, "ViewBackward", view_backward, a, result));
    return result;
}

gmd_tensor *gmd_op_swap(gmd_engine *engine, gmd_tensor *a)
{
    if (!a) {
        return NULL;
    }
    gmd_shape shape = a->shape;
    shape.size[0] = a->shape.size[1];
    shape.size[1] = a->shape.size[0];
    gmd_tensor *result = gmd_tensor_view(engine, a, &shape);
    result->transposed = !a->transposed;
    gmd_node_drop(engine, gmd_node_over(engine, "TransposeBackward", view_backward, a, result));
    return result;
}
