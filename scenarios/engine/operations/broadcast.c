/* broadcast.c - sums and products of two tensors whose shapes are broadcast against each other.
 */
#include "gmd_operations.h"
#include "reduce.h"

/* recipe.shape: the result's, then a's and b's. */
enum { RESULT, FIRST };

static int64_t size_from_end(const gmd_shape *shape, int i)
{
    return i < shape->dims ? shape->size[shape->dims - 1 - i] : 1;
}

/* False: no dimensions of 1 make them fit. */
static bool fits(const gmd_shape *a, const gmd_shape *b, gmd_shape *shape)
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

/* Where they do not fit, as many elements will do: a script need not write each view. */
static bool broadcast(gmd_engine *engine, const char *what, const gmd_tensor *a,
                      const gmd_tensor *b, gmd_shape *shape)
{
    char left[128], right[128];
    if (fits(&a->shape, &b->shape, shape)) {
        return true;
    }
    if (gmd_shape_count(&a->shape) == gmd_shape_count(&b->shape)) {
        *shape = a->shape;
        return true;
    }
    gmd_misuse(engine, "%s: shapes %s and %s differ", what, gmd_shape_text(&a->shape, left),
               gmd_shape_text(&b->shape, right));
    return false;
}

/* Where one is a single number it does not count, unless the other is of a lesser kind. */
static gmd_dtype type_of_both(const gmd_tensor *a, const gmd_tensor *b)
{
    bool same_kind = gmd_dtype_is_floating(a->dtype) == gmd_dtype_is_floating(b->dtype);
    if (same_kind && (a->shape.dims == 0) != (b->shape.dims == 0)) {
        return a->shape.dims == 0 ? b->dtype : a->dtype;
    }
    return gmd_dtype_promoted(a->dtype, b->dtype);
}

static gmd_node *binary(gmd_engine *engine, const char *name, gmd_backward backward, gmd_tensor *a,
                        gmd_tensor *b, gmd_tensor *result)
{
    if (!gmd_tensor_tracked(engine, a) && !gmd_tensor_tracked(engine, b)) {
        return NULL;
    }
    gmd_node *node = gmd_node_new(engine, name, backward, 2);
    gmd_node_connect(engine, node, 0, a);
    gmd_node_connect(engine, node, 1, b);
    node->recipe =
        (gmd_recipe){.shape = {result->shape, a->shape, b->shape}, .dtype = result->dtype};
    gmd_node_result(node, 0, result);
    return node;
}

static bool was_expanded(const gmd_node *node, uint32_t input)
{
    return gmd_shape_count(&node->recipe.shape[FIRST + input]) !=
           gmd_shape_count(&node->recipe.shape[RESULT]);
}

static gmd_tensor *summed(gmd_engine *engine, const gmd_node *node, uint32_t input)
{
    return gmd_reduce_to(engine, &node->recipe.shape[RESULT], &node->recipe.shape[FIRST + input],
                         node->recipe.dtype);
}

/* A gradient has its input's type. */
static gmd_tensor *converted(gmd_engine *engine, const gmd_node *node, uint32_t input,
                             gmd_tensor *grad)
{
    gmd_dtype dtype = (gmd_dtype)node->recipe.number[input];
    if (grad->dtype == dtype) {
        return grad;
    }
    gmd_tensor *narrow = gmd_tensor_new(engine, &grad->shape, dtype);
    gmd_tensor_drop(engine, grad);
    return narrow;
}

/* Inputs of the result's shape get the very same gradient, the others its sum. */
static void add_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                         gmd_tensor **results)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (gmd_node_wants(node, i)) {
            gmd_tensor *grad =
                was_expanded(node, i) ? summed(engine, node, i) : gmd_tensor_keep(grads[0]);
            results[i] = converted(engine, node, i, grad);
        }
    }
}

gmd_tensor *gmd_op_add(gmd_engine *engine, gmd_tensor *a, gmd_tensor *b, bool in_place)
{
    gmd_shape shape;
    if (!a || !b || !broadcast(engine, "add", a, b, &shape)) {
        return NULL;
    }
    gmd_tensor *sum =
        in_place ? gmd_tensor_alias(engine, a) : gmd_tensor_new(engine, &shape, type_of_both(a, b));
    gmd_node_drop(engine, binary(engine, "AddBackward", add_backward, a, b, sum));
    return sum;
}

static void mul_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                         gmd_tensor **results)
{
    (void)grads;
    for (uint32_t i = 0; i < 2; i++) {
        if (!gmd_node_wants(node, i)) {
            continue;
        }
        gmd_tensor *product =
            gmd_tensor_new(engine, &node->recipe.shape[RESULT], node->recipe.dtype);
        results[i] = product;
        if (was_expanded(node, i)) {
            results[i] = summed(engine, node, i);
            gmd_tensor_drop(engine, product);
        }
        results[i] = converted(engine, node, i, results[i]);
    }
}

gmd_tensor *gmd_op_mul(gmd_engine *engine, gmd_tensor *a, gmd_tensor *b, bool in_place)
{
    gmd_shape shape;
    if (!a || !b || !broadcast(engine, "mul", a, b, &shape)) {
        return NULL;
    }
    gmd_tensor *product =
        in_place ? gmd_tensor_alias(engine, a) : gmd_tensor_new(engine, &shape, type_of_both(a, b));
    gmd_node *node = binary(engine, "MulBackward", mul_backward, a, b, product);
    if (node) {
        gmd_node_save(node, gmd_node_wants(node, 1) ? a : NULL);
        gmd_node_save(node, gmd_node_wants(node, 0) ? b : NULL);
    }
    gmd_node_drop(engine, node);
    return product;
}
