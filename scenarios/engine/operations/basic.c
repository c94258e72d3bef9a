/* basic.c - elementwise operations of one tensor, and views of all of it. */
#include "gmd_autocast.h"
#include "gmd_layout.h"
#include "twice.h"

static struct tensor *new_grad(struct engine *engine, const struct node *node)
{
    return tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

/* The derivative has its own memory, and lies as the gradient does. */
static void elementwise_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                 struct tensor **results)
{
    results[0] =
        tensor_elementwise(engine, &node->recipe.shape[0], node->recipe.dtype, &grads[0], 1);
}

static struct tensor *scaled(struct engine *engine, struct tensor *a, struct tensor *result)
{
    node_drop(engine, node_over(engine, "MulBackward", elementwise_backward, a, result));
    return result;
}

struct tensor *op_scale(struct engine *engine, struct tensor *a)
{
    return a ? scaled(engine, a, tensor_like_it_lies(engine, a)) : NULL;
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
    struct tensor *result = in_place ? tensor_alias(engine, a) : tensor_like_it_lies(engine, a);
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
    struct tensor *input = autocast_argument(engine, "pow", a);
    if (!input) {
        return NULL;
    }
    struct tensor *result = tensor_like_it_lies(engine, input);
    node_over_saving(engine, "PowBackward", exponent == 0 ? elementwise_backward : power_backward,
                     input, result, input);
    tensor_drop(engine, input);
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
    struct tensor *result = tensor_like_it_lies(engine, a);
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
    struct tensor *input = autocast_argument(engine, "reciprocal", a);
    if (!input) {
        return NULL;
    }
    struct tensor *result = tensor_like_it_lies(engine, input);
    node_over_saving(engine, "ReciprocalBackward", reciprocal_backward, input, result, result);
    tensor_drop(engine, input);
    return result;
}

/* -0.5 * grad * result^3 has the same temporaries. */
struct tensor *op_rsqrt(struct engine *engine, struct tensor *a)
{
    struct tensor *input = autocast_argument(engine, "rsqrt", a);
    if (!input) {
        return NULL;
    }
    struct tensor *result = tensor_like_it_lies(engine, input);
    node_over_saving(engine, "RsqrtBackward", reciprocal_backward, input, result, result);
    tensor_drop(engine, input);
    return result;
}

struct tensor *op_relu(struct engine *engine, struct tensor *a, bool in_place)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = in_place ? tensor_alias(engine, a) : tensor_like_it_lies(engine, a);
    struct node *node = node_over(engine, "ReluBackward", elementwise_backward, a, result);
    if (node) {
        node_save(node, result);
        node->recorded = in_place ? NULL : relu_recorded;
    }
    node_drop(engine, node);
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
    struct tensor *result = tensor_like_it_lies(engine, a);
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
    struct tensor *result = tensor_like_it_lies(engine, a);
    node_drop(engine, node_over(engine, "CloneBackward", view_backward, a, result));
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
