/* basic.c - elementwise operations, reductions and views. */
#include "gmd_operations.h"
#include "reduce.h"

static struct tensor *new_grad(struct engine *engine, const struct node *node)
{
    return tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

/* The derivative has the input's shape and its own memory. */
static void elementwise_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                 struct tensor **results)
{
    (void)grads;
    results[0] = new_grad(engine, node);
}

static struct tensor *scaled(struct engine *engine, struct tensor *a, struct tensor *result)
{
    node_drop(engine, node_over(engine, "MulBackward", elementwise_backward, a, result));
    return result;
}

struct tensor *op_scale(struct engine *engine, struct tensor *a)
{
    return a ? scaled(engine, a, tensor_like(engine, a)) : NULL;
}

struct tensor *op_scale_in_place(struct engine *engine, struct tensor *a)
{
    return scaled(engine, a, tensor_alias(engine, a));
}

/* grad * (2 * a^1): the power and its double are temporaries. */
static void square_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    (void)grads;
    struct tensor *power = new_grad(engine, node);
    struct tensor *doubled = new_grad(engine, node);
    results[0] = new_grad(engine, node);
    tensor_drop(engine, doubled);
    tensor_drop(engine, power);
}

struct tensor *op_square(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_like(engine, a);
    node_over_saving(engine, "PowBackward", square_backward, a, result, a);
    return result;
}

struct tensor *op_relu(struct engine *engine, struct tensor *a, bool in_place)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = in_place ? tensor_alias(engine, a) : tensor_like(engine, a);
    node_over_saving(engine, "ReluBackward", elementwise_backward, a, result, result);
    return result;
}

struct tensor *op_dropout(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *mask = tensor_new(engine, &a->shape, DTYPE_BOOL);
    struct tensor *result = tensor_like(engine, a);
    node_over_saving(engine, "NativeDropoutBackward", elementwise_backward, a, result, mask);
    tensor_drop(engine, mask);
    return result;
}

static struct tensor *reduce(struct engine *engine, struct tensor *a)
{
    static const struct shape scalar = {0, {0}};
    return reduce_to(engine, &a->shape, &scalar, a->dtype);
}

struct tensor *op_mean(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = reduce(engine, a);
    node_drop(engine, node_over(engine, "MeanBackward", elementwise_backward, a, result));
    return result;
}

/* The gradient of a sum is one number, expanded to the shape: a view without memory of its own. */
static void sum_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    results[0] = tensor_view(engine, grads[0], &node->recipe.shape[0]);
    results[0]->expanded = true;
}

struct tensor *op_sum(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = reduce(engine, a);
    node_drop(engine, node_over(engine, "SumBackward", sum_backward, a, result));
    return result;
}

static void view_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    if (grads[0]->thing.refs == 1) { /* the same memory; nobody else holds this view of it */
        results[0] = tensor_keep(grads[0]);
        results[0]->shape = node->recipe.shape[0];
        results[0]->is_view = true;
    } else {
        results[0] = tensor_view(engine, grads[0], &node->recipe.shape[0]);
    }
}

struct tensor *op_clone(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_like(engine, a);
    node_drop(engine, node_over(engine, "CloneBackward", view_backward, a, result));
    return result;
}

struct tensor *op_reshape(struct engine *engine, struct tensor *a, const struct shape *shape)
{
    char from[128], to[128];
    if (!a) {
        return NULL;
    }
    if (shape_count(&a->shape) != shape_count(shape)) {
        engine_misuse(engine,
                      "a view of %s cannot have the shape %s: the number of elements differs",
                      shape_text(&a->shape, from), shape_text(shape, to));
        return NULL;
    }
    struct tensor *result = tensor_view(engine, a, shape);
    node_drop(engine, node_over(engine, "ViewBackward", view_backward, a, result));
    return result;
}

struct tensor *op_swap(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct shape shape = a->shape;
    shape.size[0] = a->shape.size[1];
    shape.size[1] = a->shape.size[0];
    struct tensor *result = tensor_view(engine, a, &shape);
    result->transposed = !a->transposed;
    node_drop(engine, node_over(engine, "TransposeBackward", view_backward, a, result));
    return result;
}
