/* layers.c - layers with weights, and pooling. */
#include "conv_workspace.h"
#include "gmd_autocast.h"
#include "gmd_operations.h"
#include "reduce.h"

static gmd_node *layer_node(gmd_engine *engine, const char *name, gmd_backward backward,
                            gmd_tensor *input, gmd_tensor *weight, gmd_tensor *bias)
{
    if (!gmd_tensor_tracked(engine, input) && !gmd_tensor_tracked(engine, weight)) {
        return NULL;
    }
    gmd_node *node = gmd_node_new(engine, name, backward, 3);
    gmd_node_connect(engine, node, 0, input);
    gmd_node_connect(engine, node, 1, weight);
    gmd_node_connect(engine, node, 2, bias);
    node->recipe.shape[0] = input->shape;
    node->recipe.dtype = input->dtype;
    if (weight) {
        node->recipe.shape[1] = weight->shape;
    }
    return node;
}

static gmd_tensor *grad_of_input(gmd_engine *engine, const gmd_node *node)
{
    return gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

static gmd_tensor *grad_of_weight(gmd_engine *engine, const gmd_node *node)
{
    return gmd_tensor_new(engine, &node->recipe.shape[1], node->recipe.dtype);
}

enum { COPIED, HAS_BIAS }; /* of recipe.number; COPIED: the input lay otherwise */

/* --- Linear ------------------------------------------------------------------------------ */

static gmd_tensor *column_sum(gmd_engine *engine, const gmd_node *node, uint64_t rows)
{
    int64_t columns = node->recipe.shape[1].size[0];
    gmd_shape shape = {1, {columns}}, whole = {2, {(int64_t)rows, columns}};
    return gmd_reduce_to(engine, &whole, &shape, node->recipe.dtype);
}

/* The gradients of the weight and of the bias are views: of a transposed product, and of a sum that
 * kept its dimension. */
static void bias_backward(gmd_engine *engine, const gmd_node *node, gmd_tensor **results)
{
    if (gmd_node_wants(node, 2)) {
        uint64_t features = (uint64_t)node->recipe.shape[1].size[1];
        uint64_t rows = gmd_shape_count(&node->recipe.shape[0]) / features;
        results[2] = column_sum(engine, node, rows);
        results[2]->is_view = true;
    }
}

static void weight_backward(gmd_engine *engine, const gmd_node *node, gmd_tensor **results)
{
    if (gmd_node_wants(node, 1)) {
        results[1] = grad_of_weight(engine, node);
        results[1]->is_view = true;
        gmd_cublas_workspace(engine, false);
    }
}

static void input_backward(gmd_engine *engine, const gmd_node *node, gmd_tensor **results)
{
    if (gmd_node_wants(node, 0)) {
        results[0] = grad_of_input(engine, node);
        results[0]->is_view = node->recipe.shape[0].dims > 2; /* rows, seen in their dimensions */
        gmd_cublas_workspace(engine, false);
    }
}

/* With a bias, and an input that lies in order, it is addmm, whose arguments are mat1, mat2, self.
 * Otherwise it is mm (mat2, self), and the bias is added after: back through that first. */
static void linear_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                            gmd_tensor **results)
{
    if (grads[0]->transposed) {
        gmd_tensor *rows = gmd_tensor_like(engine, grads[0]);
        gmd_tensor_drop(engine, grads[0]);
        grads[0] = rows;
    }
    if (node->recipe.number[COPIED] || !node->recipe.number[HAS_BIAS]) {
        bias_backward(engine, node, results);
        weight_backward(engine, node, results);
        input_backward(engine, node, results);
    } else {
        input_backward(engine, node, results);
        weight_backward(engine, node, results);
        bias_backward(engine, node, results);
    }
}

static gmd_tensor *linear(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight,
                          gmd_tensor *bias)
{
    char text[128];
    if (!input || !weight) {
        return NULL;
    }
    gmd_shape shape = input->shape;
    if (shape.dims < 1 || shape.size[shape.dims - 1] != weight->shape.size[1]) {
        gmd_misuse(engine, "Linear takes %lld features as the last dimension, the input is %s",
                   (long long)weight->shape.size[1], gmd_shape_text(&shape, text));
        return NULL;
    }
    shape.size[shape.dims - 1] = weight->shape.size[0];
    gmd_tensor *rows = input->transposed ? gmd_tensor_like(engine, input) : gmd_tensor_keep(input);
    gmd_tensor *result = gmd_tensor_new(engine, &shape, input->dtype);
    gmd_cublas_workspace(engine, bias && !input->transposed); /* else the bias is added after */
    gmd_node *node = layer_node(engine, "AddmmBackward", linear_backward, input, weight, bias);
    if (node) {
        node->recipe.number[COPIED] = input->transposed;
        node->recipe.number[HAS_BIAS] = bias != NULL;
        gmd_node_save(node, gmd_node_wants(node, 1) ? rows : NULL);
        gmd_node_save(node, gmd_node_wants(node, 0) ? weight : NULL);
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
    gmd_tensor_drop(engine, rows);
    return result;
}

/* Under autocast the arguments are converted in the order in which compilers evaluate them: the
 * last one first. */
gmd_tensor *gmd_op_linear(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight,
                          gmd_tensor *bias)
{
    gmd_tensor *b = gmd_autocast_input(engine, bias), *w = gmd_autocast_input(engine, weight);
    gmd_tensor *x = gmd_autocast_input(engine, input);
    gmd_tensor *result = linear(engine, x, w, b);
    gmd_tensor_drop(engine, x);
    gmd_tensor_drop(engine, w);
    gmd_tensor_drop(engine, b);
    return result;
}

/* --- Conv2d ------------------------------------------------------------------------------ */

enum { KERNEL, STRIDE, PADDING }; /* of recipe.number */

static gmd_conv_call call_of(const gmd_node *node, gmd_conv_pass pass, const gmd_shape *output)
{
    const uint64_t *number = node->recipe.number;
    return (gmd_conv_call){
        .pass = pass,
        .conv = {(int64_t)number[KERNEL], (int64_t)number[STRIDE], (int64_t)number[PADDING]},
        .dtype = node->recipe.dtype,
        .input = node->recipe.shape[0],
        .weight = node->recipe.shape[1],
        .output = *output,
    };
}

static void conv_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                          gmd_tensor **results)
{
    if (gmd_node_wants(node, 0)) {
        gmd_conv_call call = call_of(node, GMD_CONV_INPUT_GRAD, &grads[0]->shape);
        results[0] = grad_of_input(engine, node);
        gmd_conv_workspace(engine, &call);
    }
    if (gmd_node_wants(node, 1)) {
        gmd_conv_call call = call_of(node, GMD_CONV_WEIGHT_GRAD, &grads[0]->shape);
        results[1] = grad_of_weight(engine, node);
        gmd_conv_workspace(engine, &call);
    }
    if (gmd_node_wants(node, 2)) {
        gmd_shape shape = {1, {node->recipe.shape[1].size[0]}};
        results[2] = gmd_tensor_new(engine, &shape, node->recipe.dtype);
    }
}

/* The size after a window of `kernel` has moved over `size`; below 1: it does not fit. */
static int64_t windows(int64_t size, gmd_conv conv)
{
    int64_t room = size + 2 * conv.padding - conv.kernel;
    return room < 0 ? 0 : room / conv.stride + 1;
}

static bool windowed_shape(gmd_engine *engine, const char *what, const gmd_tensor *input,
                           gmd_conv conv, gmd_shape *shape)
{
    char text[128];
    *shape = input->shape;
    if (shape->dims == 4) {
        shape->size[2] = windows(shape->size[2], conv);
        shape->size[3] = windows(shape->size[3], conv);
        if (shape->size[2] > 0 && shape->size[3] > 0) {
            return true;
        }
    }
    gmd_misuse(engine,
               "%s with a window of %lld takes [batch, channels, height, width] at least as "
               "large as the window, the input is %s",
               what, (long long)conv.kernel, gmd_shape_text(&input->shape, text));
    return false;
}

static gmd_tensor *conv2d(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight,
                          gmd_tensor *bias, gmd_conv conv)
{
    gmd_shape shape;
    if (!input || !weight || !windowed_shape(engine, "Conv2d", input, conv, &shape)) {
        return NULL;
    }
    if (shape.size[1] != weight->shape.size[1]) {
        gmd_misuse(engine, "Conv2d takes %lld channels, the input has %lld",
                   (long long)weight->shape.size[1], (long long)shape.size[1]);
        return NULL;
    }
    shape.size[1] = weight->shape.size[0];
    gmd_tensor *result = gmd_tensor_new(engine, &shape, input->dtype);
    gmd_conv_call call = {GMD_CONV_FORWARD, conv, input->dtype, input->shape, weight->shape, shape};
    gmd_conv_workspace(engine, &call);
    gmd_node *node = layer_node(engine, "ConvolutionBackward", conv_backward, input, weight, bias);
    if (node) {
        node->recipe.number[KERNEL] = (uint64_t)conv.kernel;
        node->recipe.number[STRIDE] = (uint64_t)conv.stride;
        node->recipe.number[PADDING] = (uint64_t)conv.padding;
        gmd_node_save(node, gmd_node_wants(node, 1) ? input : NULL);
        gmd_node_save(node, gmd_node_wants(node, 0) ? weight : NULL);
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
    return result;
}

gmd_tensor *gmd_op_conv2d(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight,
                          gmd_tensor *bias, gmd_conv conv)
{
    gmd_tensor *b = gmd_autocast_input(engine, bias), *w = gmd_autocast_input(engine, weight);
    gmd_tensor *x = gmd_autocast_input(engine, input);
    gmd_tensor *result = conv2d(engine, x, w, b, conv);
    gmd_tensor_drop(engine, x);
    gmd_tensor_drop(engine, w);
    gmd_tensor_drop(engine, b);
    return result;
}

/* --- normalisation ----------------------------------------------------------------------- */

static void norm_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                          gmd_tensor **results)
{
    (void)grads;
    gmd_tensor *input = grad_of_input(engine, node);
    if (gmd_node_wants(node, 1)) {
        results[1] = gmd_tensor_new(engine, &node->recipe.shape[1], GMD_FLOAT32);
        results[2] = gmd_tensor_new(engine, &node->recipe.shape[1], GMD_FLOAT32);
    }
    if (gmd_node_wants(node, 0)) {
        results[0] = input;
    } else {
        gmd_tensor_drop(engine, input); /* the kernel computes it all the same */
    }
}

/* Normalises; `groups` means and as many inverse deviations are saved for the way back. */
static gmd_tensor *normalise(gmd_engine *engine, const char *name, gmd_tensor *input,
                             gmd_tensor *weight, gmd_tensor *bias, int64_t groups)
{
    gmd_shape shape = {1, {groups}};
    gmd_tensor *result = gmd_tensor_like(engine, input);
    gmd_tensor *mean = gmd_tensor_new(engine, &shape, GMD_FLOAT32);
    gmd_tensor *deviation = gmd_tensor_new(engine, &shape, GMD_FLOAT32);
    gmd_node *node = layer_node(engine, name, norm_backward, input, weight, bias);
    if (node) {
        gmd_node_save(node, input);
        gmd_node_save(node, weight);
        gmd_node_save(node, mean);
        gmd_node_save(node, deviation);
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
    gmd_tensor_drop(engine, mean);
    gmd_tensor_drop(engine, deviation);
    return result;
}

gmd_tensor *gmd_op_batch_norm(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight,
                              gmd_tensor *bias, bool training)
{
    char text[128];
    if (!input || !weight) {
        return NULL;
    }
    int64_t channels = weight->shape.size[0];
    if (input->shape.dims < 2 || input->shape.size[1] != channels) {
        gmd_misuse(engine, "BatchNorm2d takes %lld channels, the input is %s", (long long)channels,
                   gmd_shape_text(&input->shape, text));
        return NULL;
    }
    return normalise(engine, "CudnnBatchNormBackward", input, weight, bias,
                     training ? channels : 0);
}

gmd_tensor *gmd_op_layer_norm(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight,
                              gmd_tensor *bias)
{
    char text[128];
    if (!input || !weight) {
        return NULL;
    }
    int64_t features = weight->shape.size[0];
    if (input->shape.dims < 1 || input->shape.size[input->shape.dims - 1] != features) {
        gmd_misuse(engine, "LayerNorm takes %lld features as the last dimension, the input is %s",
                   (long long)features, gmd_shape_text(&input->shape, text));
        return NULL;
    }
    int64_t rows = (int64_t)(gmd_shape_count(&input->shape) / (uint64_t)features);
    gmd_tensor *wide = gmd_autocast_wide(engine, input);
    gmd_tensor *result = normalise(engine, "NativeLayerNormBackward", wide, weight, bias, rows);
    gmd_tensor_drop(engine, wide);
    return result;
}

/* --- pooling ----------------------------------------------------------------------------- */

static void pool_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                          gmd_tensor **results)
{
    (void)grads;
    results[0] = grad_of_input(engine, node);
}

gmd_tensor *gmd_op_max_pool2d(gmd_engine *engine, gmd_tensor *input, gmd_conv pool)
{
    gmd_shape shape;
    if (!input || !windowed_shape(engine, "MaxPool2d", input, pool, &shape)) {
        return NULL;
    }
    gmd_tensor *result = gmd_tensor_new(engine, &shape, input->dtype);
    gmd_tensor *indices = gmd_tensor_new(engine, &shape, GMD_INT64);
    gmd_node *node = layer_node(engine, "MaxPool2DBackward", pool_backward, input, NULL, NULL);
    if (node) {
        gmd_node_save(node, input);
        gmd_node_save(node, indices);
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
    gmd_tensor_drop(engine, indices);
    return result;
}

gmd_tensor *gmd_op_global_avg_pool(gmd_engine *engine, gmd_tensor *input)
{
    char text[128];
    if (!input) {
        return NULL;
    }
    if (input->shape.dims != 4) {
        gmd_misuse(engine,
                   "AdaptiveAvgPool2d takes [batch, channels, height, width], the input is "
                   "%s",
                   gmd_shape_text(&input->shape, text));
        return NULL;
    }
    gmd_shape shape = {4, {input->shape.size[0], input->shape.size[1], 1, 1}};
    gmd_tensor *result = gmd_tensor_new(engine, &shape, input->dtype);
    gmd_node *node = layer_node(engine, "MeanBackward", pool_backward, input, NULL, NULL);
    if (node) {
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
    return result;
}
