/* broadcast.c - sums and products of two tensors whose shapes are broadcast against each other.
 */
#include "gmd_layout.h"
#include "gmd_operations.h"
#include "reduce.h"

/* recipe.shape: the result's, then a's and b's. */
enum { RESULT, FIRST };

static int64_t size_from_end(const struct shape *shape, int i)
{
    return i < shape->dims ? shape->size[shape->dims - 1 - i] : 1;
}

/* False where the shapes cannot be broadcast. */
static bool fits(const struct shape *a, const struct shape *b, struct shape *shape)
{
    shape->dims = a->dims > b->dims ? a->dims : b->dims;
    for (int i = 0; i < shape->dims; i++) {
        int64_t m = size_from_end(a, i), n = size_from_end(b, i);
        if (m != n && m != 1 && n != 1) {
            return false;
        }
        shape->size[shape->dims - 1 - i] = m == 1 ? n : m;
    }
    return true;
}

/* Shapes that do not fit are accepted with equal numbers of elements, so that a script need not
 * write each view. */
static bool broadcast(struct engine *engine, const char *what, const struct tensor *a,
                      const struct tensor *b, struct shape *shape)
{
    char left[128], right[128];
    if (fits(&a->shape, &b->shape, shape)) {
        return true;
    }
    if (shape_count(&a->shape) == shape_count(&b->shape)) {
        *shape = a->shape;
        return true;
    }
    engine_misuse(engine, "%s: shapes %s and %s differ", what, shape_text(&a->shape, left),
                  shape_text(&b->shape, right));
    return false;
}

/* The type of a tensor without dimensions counts only where the other's kind is lower (bool,
 * integer, floating). */
static enum dtype type_of_both(const struct tensor *a, const struct tensor *b)
{
    bool same_kind = dtype_is_floating(a->dtype) == dtype_is_floating(b->dtype);
    if (same_kind && (a->shape.dims == 0) != (b->shape.dims == 0)) {
        return a->shape.dims == 0 ? b->dtype : a->dtype;
    }
    return dtype_promoted(a->dtype, b->dtype);
}

/* A new tensor for the result of both. Shapes that do not fit each other lie by rows. */
static struct tensor *result_of(struct engine *engine, const struct shape *shape, enum dtype dtype,
                                struct tensor *a, struct tensor *b)
{
    struct tensor *const operands[] = {a, b};
    bool fit = shape_expands(&a->shape, shape) && shape_expands(&b->shape, shape);
    return fit ? tensor_elementwise(engine, shape, dtype, operands, 2)
               : tensor_new(engine, shape, dtype);
}

static struct node *binary(struct engine *engine, const char *name, backward_fn backward,
                           struct tensor *a, struct tensor *b, struct tensor *result)
{
    if (!tensor_tracked(engine, a) && !tensor_tracked(engine, b)) {
        return NULL;
    }
    struct node *node = node_new(engine, name, backward, 2);
    node_connect(engine, node, 0, a);
    node_connect(engine, node, 1, b);
    node->recipe = (struct recipe){.shape = {result->shape, a->shape, b->shape},
                                   .dtype = result->dtype,
                                   .number = {a->dtype, b->dtype}};
    node_result(node, 0, result);
    return node;
}

static bool was_expanded(const struct node *node, uint32_t input)
{
    return shape_count(&node->recipe.shape[FIRST + input]) !=
           shape_count(&node->recipe.shape[RESULT]);
}

static struct tensor *summed(struct engine *engine, const struct node *node, uint32_t input)
{
    return reduce_to(engine, &node->recipe.shape[RESULT], &node->recipe.shape[FIRST + input],
                     node->recipe.dtype);
}

/* A gradient has its input's type. */
static struct tensor *converted(struct engine *engine, const struct node *node, uint32_t input,
                                struct tensor *grad)
{
    enum dtype dtype = (enum dtype)node->recipe.number[input];
    if (grad->dtype == dtype) {
        return grad;
    }
    struct tensor *narrow = tensor_new(engine, &grad->shape, dtype);
    tensor_drop(engine, grad);
    return narrow;
}

/* The gradients of both inputs, of the result's shape, become those of their own shapes: the engine
 * sums them after all are computed. Takes over `whole`. */
static void reduce_both(struct engine *engine, struct node *node, struct tensor *whole[2],
                        struct tensor **results)
{
    node_done_with_saved(engine, node);
    for (uint32_t i = 0; i < 2; i++) {
        if (whole[i] && was_expanded(node, i)) {
            results[i] = summed(engine, node, i);
            tensor_drop(engine, whole[i]);
        } else {
            results[i] = whole[i];
        }
        results[i] = results[i] ? converted(engine, node, i, results[i]) : NULL;
    }
}

/* Inputs of the result's shape get the very same gradient, the others its sum. */
static void add_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    struct tensor *whole[2] = {NULL, NULL};
    for (uint32_t i = 0; i < 2; i++) {
        whole[i] = node_wants(node, i) ? tensor_keep(grads[0]) : NULL;
    }
    reduce_both(engine, node, whole, results);
}

struct tensor *op_add(struct engine *engine, struct tensor *a, struct tensor *b, bool in_place)
{
    struct shape shape;
    if (!a || !b || !broadcast(engine, "add", a, b, &shape)) {
        return NULL;
    }
    struct tensor *sum =
        in_place ? tensor_alias(engine, a) : result_of(engine, &shape, type_of_both(a, b), a, b);
    node_drop(engine, binary(engine, "AddBackward", add_backward, a, b, sum));
    return sum;
}

/* grad times the other one; generated code goes by the names, other before self. */
static void mul_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    struct tensor *whole[2] = {NULL, NULL};
    for (uint32_t i = 2; i-- > 0;) {
        if (node_wants(node, i)) {
            whole[i] = tensor_elementwise(engine, &node->recipe.shape[RESULT], node->recipe.dtype,
                                          &grads[0], 1);
        }
    }
    reduce_both(engine, node, whole, results);
}

struct tensor *op_mul(struct engine *engine, struct tensor *a, struct tensor *b, bool in_place)
{
    struct shape shape;
    if (!a || !b || !broadcast(engine, "mul", a, b, &shape)) {
        return NULL;
    }
    /* what is overwritten is copied where the gradient of the other one needs it */
    struct tensor *before =
        in_place && tensor_tracked(engine, b) ? tensor_like_it_lies(engine, a) : tensor_keep(a);
    struct tensor *product =
        in_place ? tensor_alias(engine, a) : result_of(engine, &shape, type_of_both(a, b), a, b);
    struct node *node = binary(engine, "MulBackward", mul_backward, a, b, product);
    if (node) {
        node_save(node, node_wants(node, 1) ? before : NULL);
        node_save(node, node_wants(node, 0) ? b : NULL);
    }
    node_drop(engine, node);
    tensor_drop(engine, before);
    return product;
}

/* grad, and the second one's negated. */
static void sub_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    struct tensor *whole[2] = {NULL, NULL};
    if (node_wants(node, 1)) {
        whole[1] = tensor_like_it_lies(engine, grads[0]);
    }
    whole[0] = node_wants(node, 0) ? tensor_keep(grads[0]) : NULL;
    reduce_both(engine, node, whole, results);
}

struct tensor *op_sub(struct engine *engine, struct tensor *a, struct tensor *b)
{
    struct shape shape;
    if (!a || !b || !broadcast(engine, "sub", a, b, &shape)) {
        return NULL;
    }
    struct tensor *difference = result_of(engine, &shape, type_of_both(a, b), a, b);
    node_drop(engine, binary(engine, "SubBackward", sub_backward, a, b, difference));
    return difference;
}

/* -grad * ((a / b) / b), and grad / b; generated code goes by the names, other before self. */
static void div_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    const struct shape *shape = &node->recipe.shape[RESULT];
    struct tensor *whole[2] = {NULL, NULL};
    (void)grads;
    if (node_wants(node, 1)) {
        struct tensor *once = tensor_new(engine, shape, node->recipe.dtype);
        struct tensor *twice = tensor_new(engine, shape, node->recipe.dtype);
        struct tensor *negated = tensor_new(engine, shape, node->recipe.dtype);
        whole[1] = tensor_new(engine, shape, node->recipe.dtype);
        tensor_drop(engine, negated);
        tensor_drop(engine, twice);
        tensor_drop(engine, once);
    }
    if (node_wants(node, 0)) {
        whole[0] = tensor_new(engine, shape, node->recipe.dtype);
    }
    reduce_both(engine, node, whole, results);
}

struct tensor *op_div(struct engine *engine, struct tensor *a, struct tensor *b)
{
    struct shape shape;
    if (!a || !b || !broadcast(engine, "div", a, b, &shape)) {
        return NULL;
    }
    enum dtype dtype = type_of_both(a, b);
    struct tensor *quotient =
        result_of(engine, &shape, dtype_is_floating(dtype) ? dtype : DTYPE_FLOAT32, a, b);
    struct node *node = binary(engine, "DivBackward", div_backward, a, b, quotient);
    if (node) {
        node_save(node, b);
        node_save(node, node_wants(node, 1) ? a : NULL);
    }
    node_drop(engine, node);
    return quotient;
}
