/* math.c - activations, softmax, and products of batches of matrices. */
#include "gmd_autocast.h"
#include "gmd_operations.h"

static gmd_tensor *like_input(gmd_engine *engine, const gmd_node *node, int index)
{
    return gmd_tensor_new(engine, &node->recipe.shape[index], node->recipe.dtype);
}

/* --- activations: the derivative is a function of the result, or of the input ------------ */

static const struct {
    const char *node;
    bool saves_result;
} activations[GMD_ACTIVATIONS] = {
    [GMD_TANH] = {"TanhBackward", true},  [GMD_SIGMOID] = {"SigmoidBackward", true},
    [GMD_EXP] = {"ExpBackward", true},    [GMD_GELU] = {"GeluBackward", false},
    [GMD_SILU] = {"SiluBackward", false},
};

static void activation_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                                gmd_tensor **results)
{
    (void)grads;
    results[0] = like_input(engine, node, 0);
}

gmd_tensor *gmd_op_activation(gmd_engine *engine, gmd_activation kind, gmd_tensor *a)
{
    if (!a) {
        return NULL;
    }
    gmd_tensor *result = gmd_tensor_like(engine, a);
    gmd_node *node = gmd_node_over(engine, activations[kind].node, activation_backward, a, result);
    if (node) {
        gmd_node_save(node, activations[kind].saves_result ? result : a);
    }
    gmd_node_drop(engine, node);
    return result;
}

/* --- softmax ----------------------------------------------------------------------------- */

/* The kernel takes the product of gradient and result, which is computed before. */
static void softmax_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                             gmd_tensor **results)
{
    (void)grads;
    results[0] = like_input(engine, node, 0);
    gmd_tensor_drop(engine, like_input(engine, node, 0));
}

gmd_tensor *gmd_op_softmax(gmd_engine *engine, gmd_tensor *input)
{
    gmd_tensor *a = gmd_autocast_wide(engine, input);
    if (!a) {
        return NULL;
    }
    gmd_tensor *result = gmd_tensor_like(engine, a);
    gmd_node *node = gmd_node_over(engine, "SoftmaxBackward", softmax_backward, a, result);
    if (node) {
        gmd_node_save(node, result);
    }
    gmd_node_drop(engine, node);
    gmd_tensor_drop(engine, a);
    return result;
}

/* --- products ---------------------------------------------------------------------------- */

enum { LEFT, RIGHT }; /* edges, and recipe.shape */

/* The second matrix's gradient comes first: autograd's generated code goes by the names of the
 * arguments (mat2, self). */
static void product_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                             gmd_tensor **results)
{
    (void)grads;
    for (int i = RIGHT; i >= LEFT; i--) {
        if (gmd_node_wants(node, (uint32_t)i)) {
            results[i] = like_input(engine, node, i);
            gmd_cublas_workspace(engine, false);
        }
    }
}

static gmd_tensor *product(gmd_engine *engine, const char *name, gmd_backward backward,
                           gmd_tensor *a, gmd_tensor *b, const gmd_shape *shape)
{
    gmd_tensor *result = gmd_tensor_new(engine, shape, a->dtype);
    gmd_cublas_workspace(engine, false);
    if (gmd_tensor_tracked(engine, a) || gmd_tensor_tracked(engine, b)) {
        gmd_node *node = gmd_node_new(engine, name, backward, 2);
        gmd_node_connect(engine, node, LEFT, a);
        gmd_node_connect(engine, node, RIGHT, b);
        node->recipe = (gmd_recipe){.shape = {a->shape, b->shape}, .dtype = a->dtype};
        gmd_node_save(node, gmd_node_wants(node, RIGHT) ? a : NULL);
        gmd_node_save(node, gmd_node_wants(node, LEFT) ? b : NULL);
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
    return result;
}

static gmd_tensor *bmm(gmd_engine *engine, gmd_tensor *a, gmd_tensor *b)
{
    char left[128], right[128];
    if (!a || !b) {
        return NULL;
    }
    int dims = a->shape.dims;
    bool fits =
        dims >= 2 && b->shape.dims == dims && a->shape.size[dims - 1] == b->shape.size[dims - 2];
    for (int i = 0; fits && i < dims - 2; i++) {
        fits = a->shape.size[i] == b->shape.size[i];
    }
    if (!fits) {
        gmd_misuse(engine, "bmm takes [..., n, k] and [..., k, m]; the inputs are %s and %s",
                   gmd_shape_text(&a->shape, left), gmd_shape_text(&b->shape, right));
        return NULL;
    }
    gmd_shape shape = a->shape;
    shape.size[dims - 1] = b->shape.size[dims - 1];
    return product(engine, "BmmBackward", product_backward, a, b, &shape);
}

gmd_tensor *gmd_op_bmm(gmd_engine *engine, gmd_tensor *a, gmd_tensor *b)
{
    gmd_tensor *right = gmd_autocast_input(engine, b), *left = gmd_autocast_input(engine, a);
    gmd_tensor *result = bmm(engine, left, right);
    gmd_tensor_drop(engine, left);
    gmd_tensor_drop(engine, right);
    return result;
}

/* As product_backward, but the weight was read transposed: its gradient is a view. */
static void weight_product_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                                    gmd_tensor **results)
{
    product_backward(engine, node, grads, results);
    if (results[RIGHT]) {
        results[RIGHT]->is_view = true;
    }
}

gmd_tensor *gmd_op_product(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight)
{
    char text[128];
    if (!input || !weight) {
        return NULL;
    }
    gmd_shape shape = input->shape;
    if (shape.dims != 2 || shape.size[1] != weight->shape.size[1]) {
        gmd_misuse(engine, "[batch, %lld] expected, the input is %s",
                   (long long)weight->shape.size[1], gmd_shape_text(&shape, text));
        return NULL;
    }
    shape.size[1] = weight->shape.size[0];
    return product(engine, "MmBackward", weight_product_backward, input, weight, &shape);
}
