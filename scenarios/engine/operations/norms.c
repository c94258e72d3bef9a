/* norms.c - normalisation. Facts: ATen/native/cuda/group_norm_kernel.cu and layer_norm_kernel.cu of
 * PyTorch 2.11. */
#include "gmd_autocast.h"
#include "gmd_layout.h"
#include "gmd_more_operations.h"
#include "layer_node.h"
#include "native_batch_norm.h"

/* --- normalisation ----------------------------------------------------------------------- */

/* Indices of recipe.number: the format that the kernel reads, the bytes of the copy that it needs
 * of its input, or 0, and whether it computes the input's gradient where nobody wants that, as
 * cuDNN's does. */
enum { NORM_FORMAT, NORM_INPUT_COPY, NORM_COMPUTES_ALL };

static void norm_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    enum memory_format format = (enum memory_format)node->recipe.number[NORM_FORMAT];
    struct tensor *grad = tensor_expect(engine, grads[0], format);
    struct storage *copy = storage_new(engine, node->recipe.number[NORM_INPUT_COPY]);
    bool is_computed = node_wants(node, 0) || node->recipe.number[NORM_COMPUTES_ALL];
    struct tensor *input =
        is_computed ? tensor_new_as(engine, &node->recipe.shape[0], node->recipe.dtype, format)
                    : NULL;
    if (node_wants(node, 1)) {
        results[1] = tensor_new(engine, &node->recipe.shape[1], node->recipe.weight_dtype);
        results[2] = tensor_new(engine, &node->recipe.shape[1], node->recipe.weight_dtype);
    }
    if (node_wants(node, 0)) {
        results[0] = input;
    } else {
        tensor_drop(engine, input);
    }
    storage_drop(engine, copy);
    tensor_drop(engine, grad);
}

/* The gradients are there before that of the result is copied. */
static void layer_norm_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                struct tensor **results)
{
    struct storage *copy = storage_new(engine, node->recipe.number[NORM_INPUT_COPY]);
    if (node_wants(node, 0)) {
        results[0] = tensor_new_as(engine, &node->recipe.shape[0], node->recipe.dtype, FORMAT_ROWS);
    }
    if (node_wants(node, 1)) {
        results[1] = tensor_new(engine, &node->recipe.shape[1], node->recipe.weight_dtype);
        results[2] = tensor_new(engine, &node->recipe.shape[1], node->recipe.weight_dtype);
    }
    tensor_drop(engine, tensor_expect(engine, grads[0], FORMAT_ROWS));
    storage_drop(engine, copy);
}

/* Normalises; `groups` means and as many inverse deviations are saved for the backward pass. */
static struct tensor *normalise(struct engine *engine, const char *name, backward_fn backward,
                                struct tensor *input, struct tensor *weight, struct tensor *bias,
                                int64_t groups, enum memory_format format)
{
    struct shape shape = {1, {groups}};
    struct tensor *read = tensor_expect(engine, input, format);
    struct tensor *result = tensor_new_as(engine, &input->shape, input->dtype, format);
    struct tensor *mean = tensor_new(engine, &shape, DTYPE_FLOAT32);
    struct tensor *deviation = tensor_new(engine, &shape, DTYPE_FLOAT32);
    struct node *node = layer_node(engine, name, backward, input, weight, bias);
    if (node) {
        node->recipe.number[NORM_FORMAT] = format;
        node->recipe.number[NORM_INPUT_COPY] = read == input ? 0 : tensor_bytes(input);
    }
    layer_node_keep(engine, node, (struct tensor *[]){input, weight, mean, deviation}, 4, result);
    tensor_drop(engine, mean);
    tensor_drop(engine, deviation);
    tensor_drop(engine, read);
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
    if (input->shape.dims == 2) {
        return native_batch_norm(engine, input, weight, bias, training);
    }
    int64_t groups = training ? channels : 0;
    enum memory_format format = tensor_format(input);
    struct tensor *x =
        tensor_lies_as(input, format) ? tensor_keep(input) : op_contiguous(engine, input);
    struct tensor *result =
        normalise(engine, "CudnnBatchNormBackward", norm_backward, x, weight, bias, groups, format);
    if (result && result->grad_fn) {
        result->grad_fn->recipe.number[NORM_COMPUTES_ALL] = 1;
    }
    tensor_drop(engine, x);
    return result;
}

struct tensor *op_plain_norm(struct engine *engine, struct tensor *input, int64_t channels)
{
    return input ? normalise(engine, "NativeBatchNormBackward", norm_backward, input, NULL, NULL,
                             channels, FORMAT_ANY)
                 : NULL;
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
    struct tensor *b = autocast_argument(engine, "layer_norm", bias);
    struct tensor *w = autocast_argument(engine, "layer_norm", weight);
    struct tensor *x = autocast_argument(engine, "layer_norm", input);
    struct tensor *result = normalise(engine, "NativeLayerNormBackward", layer_norm_backward, x, w,
                                      b, rows, FORMAT_ROWS);
    tensor_drop(engine, x);
    tensor_drop(engine, w);
    tensor_drop(engine, b);
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
    struct tensor *grad = tensor_expect(engine, grads[0], FORMAT_ROWS);
    results[0] = node_wants(node, 0) ? grad_of_input(engine, node) : NULL;
    for (uint32_t i = 1; i < 3; i++) {
        if (node_wants(node, i)) {
            results[i] = tensor_new(engine, &node->recipe.shape[1], node->recipe.weight_dtype);
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
    tensor_drop(engine, grad);
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

static struct tensor *group_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                                 struct tensor *bias, int64_t groups)
{
    struct shape shape = {2, {input->shape.size[0], groups}};
    struct tensor *result = tensor_like(engine, input);
    struct tensor *mean = tensor_new(engine, &shape, input->dtype);
    struct tensor *deviation = tensor_new(engine, &shape, input->dtype);
    scale_channels(engine, input);
    struct node *node =
        layer_node(engine, "NativeGroupNormBackward", group_norm_backward, input, weight, bias);
    if (node) {
        node->recipe.number[GROUPS] = (uint64_t)groups;
    }
    layer_node_keep(engine, node, (struct tensor *[]){input, weight, mean, deviation}, 4, result);
    tensor_drop(engine, mean);
    tensor_drop(engine, deviation);
    return result;
}

struct tensor *op_group_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias, int64_t groups)
{
    if (!input || !weight || !takes_channels(engine, "GroupNorm", input, weight->shape.size[0])) {
        return NULL;
    }
    struct tensor *b = autocast_argument(engine, "group_norm", bias);
    struct tensor *w = autocast_argument(engine, "group_norm", weight);
    struct tensor *x = autocast_argument(engine, "group_norm", input);
    struct tensor *rows = op_contiguous(engine, x); /* in the graph, and kept */
    tensor_drop(engine, x);
    struct tensor *result = group_norm(engine, rows, w, b, groups);
    tensor_drop(engine, rows);
    tensor_drop(engine, w);
    tensor_drop(engine, b);
    return result;
}

/* --- root mean squares ------------------------------------------------------------------- */

static void rms_norm_backward(struct engine *engine, struct node *node, struct tensor **grads,
                              struct tensor **results)
{
    struct tensor *grad = tensor_expect(engine, grads[0], FORMAT_ROWS);
    results[0] = node_wants(node, 0) ? grad_of_input(engine, node) : NULL;
    if (node_wants(node, 1)) {
        results[1] = tensor_new(engine, &node->recipe.shape[1], node->recipe.weight_dtype);
    }
    tensor_drop(engine, grad);
}

static struct tensor *fused_rms_norm(struct engine *engine, struct tensor *input,
                                     struct tensor *weight)
{
    uint64_t features = (uint64_t)weight->shape.size[0];
    struct shape rows = {1, {(int64_t)(shape_count(&input->shape) / features)}};
    struct tensor *read = tensor_expect(engine, input, FORMAT_ROWS);
    struct tensor *result = tensor_like(engine, input);
    struct tensor *deviation = tensor_new(engine, &rows, DTYPE_FLOAT32);
    struct node *node =
        layer_node(engine, "FusedRmsNormBackward", rms_norm_backward, input, weight, NULL);
    layer_node_keep(engine, node, (struct tensor *[]){input, weight, deviation}, 3, result);
    tensor_drop(engine, read);
    tensor_drop(engine, deviation);
    return result;
}

/* Input and weight of different types, as under autocast, are no case of the fused kernel: each
 * step is an operation of its own, in 32 bits, and what it needs on the way back is kept. */
static struct tensor *rms_norm_in_steps(struct engine *engine, struct tensor *input,
                                        struct tensor *weight)
{
    struct tensor *x = op_cast(engine, input, DTYPE_FLOAT32);
    struct tensor *square = op_pow(engine, x, 2);
    struct tensor *mean = op_mean(engine, square, 1u << (x->shape.dims - 1), true);
    tensor_drop(engine, square);
    struct tensor *shifted = op_shift(engine, mean, true);
    struct tensor *factor = op_rsqrt(engine, shifted);
    tensor_drop(engine, shifted);
    tensor_drop(engine, mean);
    struct tensor *normal = op_mul(engine, x, factor, false);
    struct tensor *scaled = op_mul(engine, normal, weight, false);
    tensor_drop(engine, normal);
    struct tensor *result = op_cast(engine, scaled, input->dtype);
    tensor_drop(engine, scaled);
    tensor_drop(engine, factor);
    tensor_drop(engine, x);
    return result;
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
    return input->dtype == weight->dtype ? fused_rms_norm(engine, input, weight)
                                         : rms_norm_in_steps(engine, input, weight);
}
