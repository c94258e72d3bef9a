/* math.c - activations, softmax, and products of batches of matrices. */
#include "gmd_autocast.h"
#include "gmd_operations.h"

static struct tensor *like_input(struct engine *engine, const struct node *node, int index)
{
    return tensor_new(engine, &node->recipe.shape[index], node->recipe.dtype);
}

/* --- activations: the derivative is a function of the result, or of the input ------------ */

static const struct {
    const char *node;
    bool saves_result;
} activations[ACTIVATIONS] = {
    [ACTIVATION_TANH] = {"TanhBackward", true},
    [ACTIVATION_SIGMOID] = {"SigmoidBackward", true},
    [ACTIVATION_EXP] = {"ExpBackward", true},
    [ACTIVATION_GELU] = {"GeluBackward", false},
    [ACTIVATION_SILU] = {"SiluBackward", false},
    [ACTIVATION_LOG] = {"LogBackward", false},
    [ACTIVATION_LEAKY_RELU] = {"LeakyReluBackward", false},
};

static void activation_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                struct tensor **results)
{
    (void)grads;
    results[0] = like_input(engine, node, 0);
}

struct tensor *op_activation(struct engine *engine, enum activation kind, struct tensor *a)
{
    struct tensor *input = kind == ACTIVATION_LOG ? autocast_wide(engine, a) : tensor_keep(a);
    if (!input) {
        return NULL;
    }
    struct tensor *result = tensor_like(engine, input);
    node_over_saving(engine, activations[kind].node, activation_backward, input, result,
                     activations[kind].saves_result ? result : input);
    tensor_drop(engine, input);
    return result;
}

/* --- softmax ----------------------------------------------------------------------------- */

/* The kernel takes the product of gradient and result, which is computed first. */
static void softmax_backward(struct engine *engine, struct node *node, struct tensor **grads,
                             struct tensor **results)
{
    (void)grads;
    results[0] = like_input(engine, node, 0);
    tensor_drop(engine, like_input(engine, node, 0));
}

/* Neither kernel takes scratch memory, whatever the dimension. */
struct tensor *op_softmax(struct engine *engine, struct tensor *input)
{
    struct tensor *a = autocast_wide(engine, input);
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_like(engine, a);
    node_over_saving(engine, "SoftmaxBackward", softmax_backward, a, result, result);
    tensor_drop(engine, a);
    return result;
}

struct tensor *op_log_softmax(struct engine *engine, struct tensor *input)
{
    if (!input) {
        return NULL;
    }
    struct tensor *result = tensor_like(engine, input);
    node_over_saving(engine, "LogSoftmaxBackward", activation_backward, input, result, result);
    return result;
}

struct tensor *op_leaky_relu_in_place(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_alias(engine, a);
    node_over_saving(engine, "LeakyReluBackward", activation_backward, a, result, result);
    return result;
}

/* --- products ---------------------------------------------------------------------------- */

enum { LEFT, RIGHT }; /* edges, and recipe.shape */

/* The second matrix's gradient comes first: autograd's generated code goes by the names of the
 * arguments (mat2, self). */
static void product_backward(struct engine *engine, struct node *node, struct tensor **grads,
                             struct tensor **results)
{
    (void)grads;
    for (int i = RIGHT; i >= LEFT; i--) {
        if (node_wants(node, (uint32_t)i)) {
            results[i] = like_input(engine, node, i);
            cublas_workspace_use(engine, false);
        }
    }
}

static struct tensor *product(struct engine *engine, const char *name, backward_fn backward,
                              struct tensor *a, struct tensor *b, const struct shape *shape)
{
    struct tensor *result = tensor_new(engine, shape, a->dtype);
    cublas_workspace_use(engine, false);
    if (tensor_tracked(engine, a) || tensor_tracked(engine, b)) {
        struct node *node = node_new(engine, name, backward, 2);
        node_connect(engine, node, LEFT, a);
        node_connect(engine, node, RIGHT, b);
        node->recipe = (struct recipe){.shape = {a->shape, b->shape}, .dtype = a->dtype};
        node_save(node, node_wants(node, RIGHT) ? a : NULL);
        node_save(node, node_wants(node, LEFT) ? b : NULL);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    return result;
}

static struct tensor *bmm(struct engine *engine, struct tensor *a, struct tensor *b)
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
        engine_misuse(engine, "bmm takes [..., n, k] and [..., k, m]; the inputs are %s and %s",
                      shape_text(&a->shape, left), shape_text(&b->shape, right));
        return NULL;
    }
    struct shape shape = a->shape;
    shape.size[dims - 1] = b->shape.size[dims - 1];
    return product(engine, "BmmBackward", product_backward, a, b, &shape);
}

struct tensor *op_bmm(struct engine *engine, struct tensor *a, struct tensor *b)
{
    struct tensor *right = autocast_input(engine, b), *left = autocast_input(engine, a);
    struct tensor *result = bmm(engine, left, right);
    tensor_drop(engine, left);
    tensor_drop(engine, right);
    return result;
}

/* Like product_backward, but the weight was read transposed, so its gradient is a view. */
static void weight_product_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                    struct tensor **results)
{
    product_backward(engine, node, grads, results);
    if (results[RIGHT]) {
        results[RIGHT]->is_view = true;
    }
}

struct tensor *op_product(struct engine *engine, struct tensor *input, struct tensor *weight)
{
    char text[128];
    if (!input || !weight) {
        return NULL;
    }
    struct shape shape = input->shape;
    if (shape.dims != 2 || shape.size[1] != weight->shape.size[1]) {
        engine_misuse(engine, "[batch, %lld] expected, the input is %s",
                      (long long)weight->shape.size[1], shape_text(&shape, text));
        return NULL;
    }
    shape.size[1] = weight->shape.size[0];
    return product(engine, "MmBackward", weight_product_backward, input, weight, &shape);
}
