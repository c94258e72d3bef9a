/* elementwise.c - elementwise operations whose derivative is an expression with temporaries. Facts:
 * derivatives.yaml and clamp_backward of FunctionsManual.cpp of PyTorch 2.11. */
#include "gmd_layout.h"
#include "gmd_more_operations.h"

enum { TEMPORARIES }; /* of recipe.number */

static struct tensor *like_grad(struct engine *engine, const struct node *node, enum dtype dtype,
                                struct tensor **grads)
{
    return tensor_elementwise(engine, &node->recipe.shape[0], dtype, &grads[0], 1);
}

/* grad * f(input); f takes so many temporaries. */
static void expression_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                struct tensor **results)
{
    struct tensor *temporaries[2] = {NULL, NULL};
    for (uint64_t i = 0; i < node->recipe.number[TEMPORARIES]; i++) {
        temporaries[i] = like_grad(engine, node, node->recipe.dtype, grads);
    }
    results[0] = like_grad(engine, node, node->recipe.dtype, grads);
    tensor_drop(engine, temporaries[1]);
    tensor_drop(engine, temporaries[0]);
}

/* The sign; the cosine; the sine and its negative. */
static const struct {
    const char *node;
    uint64_t temporaries;
} kinds[ELEMENTWISES] = {
    [ELEMENTWISE_ABS] = {"AbsBackward", 1},
    [ELEMENTWISE_SIN] = {"SinBackward", 1},
    [ELEMENTWISE_COS] = {"CosBackward", 2},
};

struct tensor *op_elementwise(struct engine *engine, enum elementwise kind, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_like_it_lies(engine, a);
    struct node *node = node_over(engine, kinds[kind].node, expression_backward, a, result);
    if (node) {
        node->recipe.number[TEMPORARIES] = kinds[kind].temporaries;
        node_save(node, a);
    }
    node_drop(engine, node);
    return result;
}

/* --- bounds ------------------------------------------------------------------------------- */

/* The gradient where the input lies between the bounds, else a zero: a mask for each bound. */
static void clamp_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    static const struct shape scalar = {0, {0}};
    struct tensor *zero = tensor_new(engine, &scalar, node->recipe.dtype);
    struct tensor *masks[2] = {NULL, NULL};
    for (uint64_t i = 0; i < node->recipe.number[TEMPORARIES]; i++) {
        masks[i] = like_grad(engine, node, DTYPE_BOOL, grads);
    }
    results[0] = like_grad(engine, node, node->recipe.dtype, grads);
    tensor_drop(engine, masks[1]);
    tensor_drop(engine, masks[0]);
    tensor_drop(engine, zero);
}

struct tensor *op_clamp(struct engine *engine, struct tensor *a, bool has_both)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_like_it_lies(engine, a);
    struct node *node = node_over(engine, "ClampBackward", clamp_backward, a, result);
    if (node) {
        node->recipe.number[TEMPORARIES] = has_both ? 2 : 1;
        node_save(node, a);
    }
    node_drop(engine, node);
    return result;
}
