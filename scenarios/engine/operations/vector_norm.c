/* vector_norm.c - the length of vectors, and the logarithm of a sum of powers. Facts:
 * ReduceOps.cpp (logsumexp), LinearAlgebra.cpp (linalg_vector_norm) and FunctionsManual.cpp of
 * PyTorch 2.11; normalize() in torch/nn/functional.py. */
#include "gmd_autocast.h"
#include "gmd_layout.h"
#include "gmd_more_operations.h"
#include "reduce.h"

enum { INPUT, RESULT }; /* of recipe.shape; RESULT with the dimensions that were reduced */

static struct shape kept_shape(const struct tensor *a, uint32_t dimensions)
{
    struct shape kept = a->shape;
    for (int i = 0; i < kept.dims; i++) {
        kept.size[i] = dimensions == 0 || dimensions & (1u << i) ? 1 : kept.size[i];
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

/* Records a node over the input, which it saves with the result. */
static void record(struct engine *engine, const char *name, backward_fn backward,
                   const struct shape *kept, struct tensor *input, struct tensor *result)
{
    struct node *node = node_over(engine, name, backward, input, result);
    if (node) {
        node->recipe.shape[RESULT] = *kept;
        node_save(node, input);
        node_save(node, result);
    }
    node_drop(engine, node);
}

/* grad * (self / norm).masked_fill_(norm == 0, 0) */
static void norm_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    (void)grads;
    const struct recipe *recipe = &node->recipe;
    struct tensor *unit = tensor_new(engine, &recipe->shape[INPUT], recipe->dtype);
    struct tensor *is_zero = tensor_new(engine, &recipe->shape[RESULT], DTYPE_BOOL);
    tensor_drop(engine, is_zero);
    results[0] = tensor_new(engine, &recipe->shape[INPUT], recipe->dtype);
    tensor_drop(engine, unit);
}

struct tensor *op_vector_norm(struct engine *engine, struct tensor *a, uint32_t dimensions,
                              bool keepdim)
{
    if (!a) {
        return NULL;
    }
    struct shape kept = kept_shape(a, dimensions);
    enum dtype dtype = autocast_result(engine, "norm", a->dtype);
    struct tensor *result = reduce_to(engine, &a->shape, &kept, dtype);
    if (!keepdim) {
        squeeze(result, dimensions);
    }
    record(engine, "LinalgVectorNormBackward", norm_backward, &kept, a, result);
    return result;
}

struct tensor *op_normalize(struct engine *engine, struct tensor *a, int dimension)
{
    if (!a) {
        return NULL;
    }
    struct tensor *norm = op_vector_norm(engine, a, 1u << dimension, true);
    struct tensor *least = op_clamp(engine, norm, false);
    tensor_drop(engine, norm);
    struct tensor *whole = op_expand(engine, least, &a->shape);
    tensor_drop(engine, least);
    struct tensor *result = op_div(engine, a, whole);
    tensor_drop(engine, whole);
    return result;
}

/* grad * (self - result).exp() */
static void logsumexp_backward(struct engine *engine, struct node *node, struct tensor **grads,
                               struct tensor **results)
{
    (void)grads;
    const struct recipe *recipe = &node->recipe;
    struct tensor *difference = tensor_new(engine, &recipe->shape[INPUT], recipe->dtype);
    struct tensor *power = tensor_new(engine, &recipe->shape[INPUT], recipe->dtype);
    results[0] = tensor_new(engine, &recipe->shape[INPUT], recipe->dtype);
    tensor_drop(engine, power);
    tensor_drop(engine, difference);
}

/* The largest of each sum are taken off first, unless they are infinite. */
struct tensor *op_logsumexp(struct engine *engine, struct tensor *a, uint32_t dimensions,
                            bool keepdim)
{
    struct tensor *input = autocast_argument(engine, "logsumexp", a);
    if (!input) {
        return NULL;
    }
    struct shape kept = kept_shape(input, dimensions);
    struct tensor *most = reduce_to(engine, &input->shape, &kept, input->dtype);
    struct tensor *absolute = tensor_like(engine, most);
    struct tensor *is_infinite = tensor_new(engine, &kept, DTYPE_BOOL);
    tensor_drop(engine, is_infinite);
    tensor_drop(engine, absolute);
    struct tensor *powers = tensor_like_it_lies(engine, input);
    struct tensor *result = reduce_to(engine, &input->shape, &kept, input->dtype);
    tensor_drop(engine, powers);
    tensor_drop(engine, most);
    if (!keepdim) {
        squeeze(result, dimensions);
    }
    record(engine, "LogsumexpBackward", logsumexp_backward, &kept, input, result);
    tensor_drop(engine, input);
    return result;
}
