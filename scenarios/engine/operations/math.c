/* math.c - activations. */
#include "gmd_autocast.h"
#include "gmd_layout.h"
#include "twice.h"

/* --- activations: the derivative is a function of the result, or of the input ------------ */

static const struct {
    const char *node, *name;
    bool saves_result;
} activations[ACTIVATIONS] = {
    [ACTIVATION_TANH] = {"TanhBackward", "tanh", true},
    [ACTIVATION_SIGMOID] = {"SigmoidBackward", "sigmoid", true},
    [ACTIVATION_EXP] = {"ExpBackward", "exp", true},
    [ACTIVATION_GELU] = {"GeluBackward", "gelu", false},
    [ACTIVATION_SILU] = {"SiluBackward", "silu", false},
    [ACTIVATION_LOG] = {"LogBackward", "log", false},
    [ACTIVATION_LEAKY_RELU] = {"LeakyReluBackward", "leaky_relu", false},
    [ACTIVATION_ELU] = {"EluBackward", "elu", false},
    [ACTIVATION_SOFTPLUS] = {"SoftplusBackward", "softplus", false},
    [ACTIVATION_MISH] = {"MishBackward", "mish", false},
    [ACTIVATION_HARDSWISH] = {"HardswishBackward", "hardswish", false},
    [ACTIVATION_RELU6] = {"HardtanhBackward", "relu6", false},
};

static void activation_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                struct tensor **results)
{
    results[0] =
        tensor_elementwise(engine, &node->recipe.shape[0], node->recipe.dtype, &grads[0], 1);
}

struct tensor *op_activation(struct engine *engine, enum activation kind, struct tensor *a)
{
    struct tensor *input = autocast_argument(engine, activations[kind].name, a);
    if (!input) {
        return NULL;
    }
    struct tensor *result = tensor_like_it_lies(engine, input);
    struct node *node =
        node_over(engine, activations[kind].node, activation_backward, input, result);
    if (node) {
        node_save(node, activations[kind].saves_result ? result : input);
        node->recorded = kind == ACTIVATION_TANH         ? tanh_recorded
                         : kind == ACTIVATION_LEAKY_RELU ? leaky_relu_recorded
                                                         : NULL;
    }
    node_drop(engine, node);
    tensor_drop(engine, input);
    return result;
}

/* --- in place ---------------------------------------------------------------------------- */

struct tensor *op_leaky_relu_in_place(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_alias(engine, a);
    node_over_saving(engine, "LeakyReluBackward", activation_backward, a, result, result);
    return result;
}
