/* pools.c - pooling, and images made larger. Facts: AveragePool2d.cu, AdaptiveAveragePooling.cu and
 * UpSample*2d.cu of PyTorch 2.11. */
#include "layer_node.h"

static void pool_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    (void)grads;
    results[0] = grad_of_input(engine, node);
}

struct tensor *op_max_pool2d(struct engine *engine, struct tensor *input, struct conv pool)
{
    struct shape shape;
    if (!input || !windowed_shape(engine, "MaxPool2d", input, pool, &shape)) {
        return NULL;
    }
    struct tensor *result = tensor_new(engine, &shape, input->dtype);
    struct tensor *indices = tensor_new(engine, &shape, DTYPE_INT64);
    struct node *node = layer_node(engine, "MaxPool2DBackward", pool_backward, input, NULL, NULL);
    if (node) {
        node_save(node, input);
        node_save(node, indices);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    tensor_drop(engine, indices);
    return result;
}

static bool is_image(struct engine *engine, const char *what, const struct tensor *input)
{
    char text[128];
    if (input->shape.dims == 4) {
        return true;
    }
    engine_misuse(engine, "%s takes [batch, channels, height, width], the input is %s", what,
                  shape_text(&input->shape, text));
    return false;
}

/* An image of another size; `saves`: its kernel for the way back reads the input. */
static struct tensor *resized(struct engine *engine, const char *name, struct tensor *input,
                              const struct shape *shape, bool saves)
{
    struct tensor *result = tensor_new(engine, shape, input->dtype);
    struct node *node = layer_node(engine, name, pool_backward, input, NULL, NULL);
    if (node) {
        node_save(node, saves ? input : NULL);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    return result;
}

struct tensor *op_avg_pool2d(struct engine *engine, struct tensor *input, struct conv pool)
{
    struct shape shape;
    if (!input || !windowed_shape(engine, "AvgPool2d", input, pool, &shape)) {
        return NULL;
    }
    return resized(engine, "AvgPool2DBackward", input, &shape, true);
}

/* To 1 by 1 it is a mean, which saves nothing. */
struct tensor *op_adaptive_avg_pool2d(struct engine *engine, struct tensor *input,
                                      const int64_t size[2])
{
    if (!input || !is_image(engine, "AdaptiveAvgPool2d", input)) {
        return NULL;
    }
    bool is_mean = size[0] == 1 && size[1] == 1;
    struct shape shape = {4, {input->shape.size[0], input->shape.size[1], size[0], size[1]}};
    return resized(engine, is_mean ? "MeanBackward" : "AdaptiveAvgPool2DBackward", input, &shape,
                   !is_mean);
}

struct tensor *op_upsample(struct engine *engine, struct tensor *input, struct upsample to)
{
    if (!input || !is_image(engine, "Upsample", input)) {
        return NULL;
    }
    struct shape shape = input->shape;
    for (int i = 0; i < 2; i++) {
        double scaled = (double)shape.size[2 + i] * to.scale;
        shape.size[2 + i] = to.scale > 0 ? (int64_t)scaled : to.size[i];
    }
    if (shape.size[2] < 1 || shape.size[3] < 1) {
        engine_misuse(engine, "Upsample leaves nothing of the image");
        return NULL;
    }
    return resized(engine, to.bilinear ? "UpsampleBilinear2DBackward" : "UpsampleNearest2DBackward",
                   input, &shape, false);
}
