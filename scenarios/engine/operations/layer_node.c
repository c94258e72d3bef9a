#include "layer_node.h"

struct node *layer_node(struct engine *engine, const char *name, backward_fn backward,
                        struct tensor *input, struct tensor *weight, struct tensor *bias)
{
    if (!tensor_tracked(engine, input) && !tensor_tracked(engine, weight)) {
        return NULL;
    }
    struct node *node = node_new(engine, name, backward, 3);
    node_connect(engine, node, 0, input);
    node_connect(engine, node, 1, weight);
    node_connect(engine, node, 2, bias);
    node->recipe.shape[0] = input->shape;
    node->recipe.dtype = input->dtype;
    if (weight) {
        node->recipe.shape[1] = weight->shape;
        node->recipe.weight_dtype = weight->dtype;
    }
    return node;
}

void layer_node_keep(struct engine *engine, struct node *node, struct tensor *const kept[],
                     size_t count, struct tensor *result)
{
    if (node) {
        for (size_t i = 0; i < count; i++) {
            node_save(node, kept[i]);
        }
        node_result(node, 0, result);
        node_drop(engine, node);
    }
}

bool same_types(struct engine *engine, const char *what, const struct tensor *input,
                const struct tensor *weight)
{
    if (input->dtype == weight->dtype) {
        return true;
    }
    engine_misuse(engine, "%s: the input is %s and the weights are %s", what,
                  dtype_name(input->dtype), dtype_name(weight->dtype));
    return false;
}

struct tensor *grad_of_input(struct engine *engine, const struct node *node)
{
    return tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

/* The size after a window has moved over `size` along dimension `i`; below 1: it does not fit. */
static int64_t windows(int64_t size, const struct conv *conv, int i)
{
    int64_t span = conv->dilation[i] * (conv->kernel[i] - 1) + 1;
    int64_t room = size + 2 * conv->padding[i] - span;
    return room < 0 ? 0 : room / conv->stride[i] + 1;
}

bool windowed_shape(struct engine *engine, const char *what, const struct tensor *input,
                    struct conv conv, struct shape *shape)
{
    char text[128];
    *shape = input->shape;
    if (shape->dims == 4) {
        shape->size[2] = windows(shape->size[2], &conv, 0);
        shape->size[3] = windows(shape->size[3], &conv, 1);
        if (shape->size[2] > 0 && shape->size[3] > 0) {
            return true;
        }
    }
    engine_misuse(engine,
                  "%s with a window of %lld x %lld takes [batch, channels, height, width] at least "
                  "as large as the window, the input is %s",
                  what, (long long)conv.kernel[0], (long long)conv.kernel[1],
                  shape_text(&input->shape, text));
    return false;
}
