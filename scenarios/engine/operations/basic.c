/* basic.c - elementwise operations of one tensor, and views of all of it. */
#include "gmd_layout.h"
#include "gmd_operations.h"

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

static void unchanged_backward(struct engine *engine, struct node *node, struct tensor **grads,
                               struct tensor **results)
{
    (void)engine;
    (void)node;
    results[0] = tensor_keep(grads[0]);
}

struct tensor *op_shift(struct engine *engine, struct tensor *a, bool in_place)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = in_place ? tensor_alias(engine, a) : tensor_like(engine, a);
    node_drop(engine, node_over(engine, "AddBackward", unchanged_backward, a, result));
    return result;
}

struct tensor *op_scale_in_place(struct engine *engine, struct tensor *a)
{
    return scaled(engine, a, tensor_alias(engine, a));
}

/* grad * (n * a^(n - 1)): the power and its multiple are temporaries. */
static void power_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    (void)grads;
    struct tensor *power = new_grad(engine, node);
    struct tensor *multiple = new_grad(engine, node);
    results[0] = new_grad(engine, node);
    tensor_drop(engine, multiple);
    tensor_drop(engine, power);
}

/* The power of 0 has a gradient of zeros. */
struct tensor *op_pow(struct engine *engine, struct tensor *a, double exponent)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_like(engine, a);
    node_over_saving(engine, "PowBackward", exponent == 0 ? elementwise_backward : power_backward,
                     a, result, a);
    return result;
}

/* grad / (2 * result) */
static void root_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    (void)grads;
    struct tensor *twice = new_grad(engine, node);
    results[0] = new_grad(engine, node);
    tensor_drop(engine, twice);
}

struct tensor *op_sqrt(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_like(engine, a);
    node_over_saving(engine, "SqrtBackward", root_backward, a, result, result);
    return result;
}

/* -grad * (result * result) */
static void reciprocal_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                struct tensor **results)
{
    (void)grads;
    struct tensor *square = new_grad(engine, node);
    struct tensor *negated = new_grad(engine, node);
    results[0] = new_grad(engine, node);
    tensor_drop(engine, negated);
    tensor_drop(engine, square);
}

struct tensor *op_reciprocal(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_like(engine, a);
    node_over_saving(engine, "ReciprocalBackward", reciprocal_backward, a, result, result);
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

/* A probability of 0 changes nothing; one of 1 is a product with a zero. */
struct tensor *op_dropout(struct engine *engine, struct tensor *a, double p)
{
    static const struct shape scalar = {0, {0}};
    if (!a || p <= 0) {
        return tensor_keep(a);
    }
    bool drops_all = p >= 1;
    struct tensor *mask =
        tensor_new(engine, drops_all ? &scalar : &a->shape, drops_all ? a->dtype : DTYPE_BOOL);
    struct tensor *result = tensor_like(engine, a);
    node_over_saving(engine, drops_all ? "MulBackward" : "NativeDropoutBackward",
                     elementwise_backward, a, result, mask);
    tensor_drop(engine, mask);
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
    static const int order[SHAPE_MAX_DIMS] = {1, 0, 2, 3, 4, 5};
    struct tensor *result = tensor_permuted(engine, a, order);
    node_drop(engine, node_over(engine, "TransposeBackward", view_backward, a, result));
    return result;
}
