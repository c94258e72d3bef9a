/* norms.c - normalisation. Facts: ATen/native/cuda/group_norm_kernel.cu and layer_norm_kernel.cu of
 * PyTorch 2.11. */
#include "gmd_autocast.h"
#include "layer_node.h"

/* --- normalisation ----------------------------------------------------------------------- */

static void norm_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    (void)grads;
    struct tensor *input = grad_of_input(engine, node);
    if (node_wants(node, 1)) {
        results[1] = tensor_new(engine, &node->recipe.shape[1], DTYPE_FLOAT32);
        results[2] = tensor_new(engine, &node->recipe.shape[1], DTYPE_FLOAT32);
    }
    if (node_wants(node, 0)) {
        results[0] = input;
    } else {
        tensor_drop(engine, input); /* the kernel computes it anyway */
    }
}

/* Normalises; `groups` means and as many inverse deviations are saved for the backward pass. */
static struct tensor *normalise(struct engine *engine, const char *name, struct tensor *input,
                                struct tensor *weight, struct tensor *bias, int64_t groups)
{
    struct shape shape = {1, {groups}};
    struct tensor *result = tensor_like(engine, input);
    struct tensor *mean = tensor_new(engine, &shape, DTYPE_FLOAT32);
    struct tensor *deviation = tensor_new(engine, &shape, DTYPE_FLOAT32);
    struct node *node = layer_node(engine, name, norm_backward, input, weight, bias);
    if (node) {
        node_save(node, input);
        node_save(node, weight);
        node_save(node, mean);
        node_save(node, deviation);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    tensor_drop(engine, mean);
    tensor_drop(engine, deviation);
    return result;
}

struct tensor *op_batch_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias, bool training)
{
    char text[128];
    if (!input || !weight) {
        return NULL;
    }
    int64_t channels = weight->shape.size[0];
    if (input->shape.dims < 2 || input->shape.size[1] != channels) {
        engine_misuse(engine, "BatchNorm takes %lld channels, the input is %s", (long long)channels,
                      shape_text(&input->shape, text));
        return NULL;
    }
    return normalise(engine, "CudnnBatchNormBackward", input, weight, bias,
                     training ? channels : 0);
}

struct tensor *op_layer_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias)
{
    char text[128];
    if (!input || !weight) {
        return NULL;
    }
    int64_t features = weight->shape.size[0];
    if (input->shape.dims < 1 || input->shape.size[input->shape.dims - 1] != features) {
        engine_misuse(engine,
                      "LayerNorm takes %lld features as the last dimension, the input is %s",
                      (long long)features, shape_text(&input->shape, text));
        return NULL;
    }
    int64_t rows = (int64_t)(shape_count(&input->shape) / (uint64_t)features);
    struct tensor *wide = autocast_wide(engine, input);
    struct tensor *result = normalise(engine, "NativeLayerNormBackward", wide, weight, bias, rows);
    tensor_drop(engine, wide);
    return result;
}

/* --- groups of channels ------------------------------------------------------------------ */

enum { GROUPS };

static struct tensor *wide(struct engine *engine, int64_t rows, int64_t columns)
{
    struct shape shape = {2, {rows, columns}};
    return tensor_new(engine, &shape, DTYPE_FLOAT32);
}

/* Sums for each channel, and three factors, besides the gradients. */
static void group_norm_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                struct tensor **results)
{
    int64_t rows = node->recipe.shape[0].size[0], channels = node->recipe.shape[0].size[1];
    int64_t groups = (int64_t)node->recipe.number[GROUPS];
    (void)grads;
    results[0] = node_wants(node, 0) ? grad_of_input(engine, node) : NULL;
    for (uint32_t i = 1; i < 3; i++) {
        if (node_wants(node, i)) {
            results[i] = tensor_new(engine, &node->recipe.shape[1], DTYPE_FLOAT32);
        }
    }
    struct tensor *sums = wide(engine, rows, channels), *products = wide(engine, rows, channels);
    if (results[0]) {
        struct tensor *second = wide(engine, rows, groups), *third = wide(engine, rows, groups);
        struct tensor *first = wide(engine, rows, channels);
        tensor_drop(engine, third);
        tensor_drop(engine, second);
        tensor_drop(engine, first);
    }
    tensor_drop(engine, products);
    tensor_drop(engine, sums);
}

static bool takes_channels(struct engine *engine, const char *what, const struct tensor *input,
                           int64_t channels)
{
    char text[128];
    if (input->shape.dims >= 2 && input->shape.size[1] == channels) {
        return true;
    }
    engine_misuse(engine, "%s takes %lld channels, the input is %s", what, (long long)channels,
                  shape_text(&input->shape, text));
    return false;
}

/* A scale and a shift of each channel are computed first, unless there is one element in it. */
static void scale_channels(struct engine *engine, const struct tensor *input)
{
    int64_t rows = input->shape.size[0], channels = input->shape.size[1];
    if (shape_count(&input->shape) > (uint64_t)(rows * channels)) {
        struct tensor *scale = wide(engine, rows, channels);
        tensor_drop(engine, wide(engine, rows, channels));
        tensor_drop(engine, scale);
    }
}

struct tensor *op_group_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias, int64_t groups)
{
    if (!input || !weight || !takes_channels(engine, "GroupNorm", input, weight->shape.size[0])) {
        return NULL;
    }
    struct shape shape = {2, {input->shape.size[0], groups}};
    struct tensor *x = autocast_wide(engine, input);
    struct tensor *result = tensor_like(engine, x);
    struct tensor *mean = tensor_new(engine, &shape, x->dtype);
    struct tensor *deviation = tensor_new(engine, &shape, x->dtype);
    scale_channels(engine, x);
    struct node *node =
        layer_node(engine, "NativeGroupNormBackward", group_norm_backward, x, weight, bias);
    if (node) {
        node->recipe.number[GROUPS] = (uint64_t)groups;
        node_save(node, x);
        node_save(node, weight);
        node_save(node, mean);
        node_save(node, deviation);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    tensor_drop(engine, mean);
    tensor_drop(engine, deviation);
    tensor_drop(engine, x);
    return result;
}

/* --- root mean squares ------------------------------------------------------------------- */

static void rms_norm_backward(struct engine *engine, struct node *node, struct tensor **grads,
                              struct tensor **results)
{
    (void)grads;
    results[0] = node_wants(node, 0) ? grad_of_input(engine, node) : NULL;
    if (node_wants(node, 1)) {
        results[1] = tensor_new(engine, &node->recipe.shape[1], DTYPE_FLOAT32);
    }
}

struct tensor *op_rms_norm(struct engine *engine, struct tensor *input, struct tensor *weight)
{
    char text[128];
    if (!input || !weight) {
        return NULL;
    }
    int64_t features = weight->shape.size[0];
    if (input->shape.dims < 1 || input->shape.size[input->shape.dims - 1] != features) {
        engine_misuse(engine, "RMSNorm takes %lld features as the last dimension, the input is %s",
                      (long long)features, shape_text(&input->shape, text));
        return NULL;
    }
    struct shape rows = {1, {(int64_t)(shape_count(&input->shape) / (uint64_t)features)}};
    struct tensor *result = tensor_like(engine, input);
    struct tensor *deviation = tensor_new(engine, &rows, DTYPE_FLOAT32);
    struct node *node =
        layer_node(engine, "FusedRmsNormBackward", rms_norm_backward, input, weight, NULL);
    if (node) {
        node_save(node, input);
        node_save(node, weight);
        node_save(node, deviation);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    tensor_drop(engine, deviation);
    return result;
}
