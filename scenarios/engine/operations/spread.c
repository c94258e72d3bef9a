/* spread.c - variances and standard deviations. Facts: var_backward and std_backward of
 * FunctionsManual.cpp, and ReduceMomentKernel.cu of PyTorch 2.11. */
#include "gmd_more_operations.h"
#include "reduce.h"

#define WELFORD_BYTES 16 /* of a mean, a sum of squares and two counts */

enum { INPUT, KEPT };  /* recipe.shape; KEPT: reduced dimensions have size 1 */
enum { BY_DIMENSION }; /* of recipe.number */

/* 2 / (n - 1) * grad * (input - mean) */
static struct tensor *variance_grad(struct engine *engine, const struct node *node,
                                    const struct tensor *grad)
{
    const struct recipe *recipe = &node->recipe;
    static const struct shape scalar = {0, {0}};
    bool by_dimension = recipe->number[BY_DIMENSION];
    struct tensor *mean = reduce_to(engine, &recipe->shape[INPUT],
                                    by_dimension ? &recipe->shape[KEPT] : &scalar, recipe->dtype);
    struct tensor *difference = tensor_new(engine, &recipe->shape[INPUT], recipe->dtype);
    struct tensor *scaled = tensor_like(engine, grad);
    struct tensor *result = tensor_new(engine, &recipe->shape[INPUT], recipe->dtype);
    tensor_drop(engine, scaled);
    tensor_drop(engine, difference);
    tensor_drop(engine, mean);
    return result;
}

static void variance_backward(struct engine *engine, struct node *node, struct tensor **grads,
                              struct tensor **results)
{
    results[0] = variance_grad(engine, node, grads[0]);
}

/* grad / (2 * result), 0 where the result is 0, is the gradient of the variance. */
static void deviation_backward(struct engine *engine, struct node *node, struct tensor **grads,
                               struct tensor **results)
{
    struct tensor *is_zero = tensor_new(engine, &grads[0]->shape, DTYPE_BOOL);
    struct tensor *twice = tensor_like(engine, grads[0]);
    struct tensor *quotient = tensor_like(engine, grads[0]);
    tensor_drop(engine, twice);
    tensor_drop(engine, is_zero);
    results[0] = variance_grad(engine, node, quotient);
    tensor_drop(engine, quotient);
}

struct tensor *op_variance(struct engine *engine, struct tensor *a, uint32_t dimensions,
                           bool keepdim, bool is_root)
{
    if (!a) {
        return NULL;
    }
    if (!dtype_is_floating(a->dtype)) {
        engine_misuse(engine, "the variance is of floating numbers, and this tensor is %s",
                      dtype_name(a->dtype));
        return NULL;
    }
    struct shape kept = a->shape, rest = {0, {0}};
    for (int i = 0; i < a->shape.dims; i++) {
        bool is_reduced = dimensions == 0 || dimensions & (1u << i);
        kept.size[i] = is_reduced ? 1 : a->shape.size[i];
        if (!is_reduced) {
            rest.size[rest.dims++] = a->shape.size[i];
        }
    }
    struct tensor *result = tensor_new(engine, keepdim ? &kept : &rest, a->dtype);
    reduce_scratch_to(engine, &a->shape, &kept, WELFORD_BYTES);
    struct node *node = node_over(engine, is_root ? "StdBackward" : "VarBackward",
                                  is_root ? deviation_backward : variance_backward, a, result);
    if (node) {
        node->recipe.shape[KEPT] = kept;
        node->recipe.number[BY_DIMENSION] = dimensions != 0;
        node_save(node, a);
        node_save(node, is_root ? result : NULL);
    }
    node_drop(engine, node);
    return result;
}
