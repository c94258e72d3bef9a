/* layers.c - layers with weights, and pooling. */
#include "conv_workspace.h"
#include "gmd_autocast.h"
#include "gmd_operations.h"
#include "reduce.h"

static struct node *layer_node(struct engine *engine, const char *name, backward_fn backward,
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
    }
    return node;
}

static struct tensor *grad_of_input(struct engine *engine, const struct node *node)
{
    return tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

static struct tensor *grad_of_weight(struct engine *engine, const struct node *node)
{
    return tensor_new(engine, &node->recipe.shape[1], node->recipe.dtype);
}

enum { COPIED, HAS_BIAS }; /* of recipe.number; COPIED: the input was not contiguous */

/* --- Linear ------------------------------------------------------------------------------ */

static struct tensor *column_sum(struct engine *engine, const struct node *node, uint64_t rows)
{
    int64_t columns = node->recipe.shape[1].size[0];
    struct shape shape = {1, {columns}}, whole = {2, {(int64_t)rows, columns}};
    return reduce_to(engine, &whole, &shape, node->recipe.dtype);
}

/* The gradients of the weight and of the bias are views: of a transposed product, and of a sum that
 * kept its dimension. */
static void bias_backward(struct engine *engine, const struct node *node, struct tensor **results)
{
    if (node_wants(node, 2)) {
        uint64_t features = (uint64_t)node->recipe.shape[1].size[1];
        uint64_t rows = shape_count(&node->recipe.shape[0]) / features;
        results[2] = column_sum(engine, node, rows);
        results[2]->is_view = true;
    }
}

static void weight_backward(struct engine *engine, const struct node *node, struct tensor **results)
{
    if (node_wants(node, 1)) {
        results[1] = grad_of_weight(engine, node);
        results[1]->is_view = true;
        cublas_workspace_use(engine, false);
    }
}

static void input_backward(struct engine *engine, const struct node *node, struct tensor **results)
{
    if (node_wants(node, 0)) {
        results[0] = grad_of_input(engine, node);
        /* a view of rows with the input's dimensions */
        results[0]->is_view = node->recipe.shape[0].dims > 2;
        cublas_workspace_use(engine, false);
    }
}

/* With a bias and a contiguous input it is addmm, whose arguments are mat1, mat2, self. Otherwise
 * it is mm (mat2, self) and the bias is added afterwards, so the backward pass goes through that
 * first. */
static void linear_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    if (grads[0]->transposed) {
        struct tensor *rows = tensor_like(engine, grads[0]);
        tensor_drop(engine, grads[0]);
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

static struct tensor *linear(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias)
{
    char text[128];
    if (!input || !weight) {
        return NULL;
    }
    struct shape shape = input->shape;
    if (shape.dims < 1 || shape.size[shape.dims - 1] != weight->shape.size[1]) {
        engine_misuse(engine, "Linear takes %lld features as the last dimension, the input is %s",
                      (long long)weight->shape.size[1], shape_text(&shape, text));
        return NULL;
    }
    shape.size[shape.dims - 1] = weight->shape.size[0];
    struct tensor *rows = input->transposed ? tensor_like(engine, input) : tensor_keep(input);
    struct tensor *result = tensor_new(engine, &shape, input->dtype);
    cublas_workspace_use(engine, bias && !input->transposed); /* else the bias is added after */
    struct node *node = layer_node(engine, "AddmmBackward", linear_backward, input, weight, bias);
    if (node) {
        node->recipe.number[COPIED] = input->transposed;
        node->recipe.number[HAS_BIAS] = bias != NULL;
        node_save(node, node_wants(node, 1) ? rows : NULL);
        node_save(node, node_wants(node, 0) ? weight : NULL);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    tensor_drop(engine, rows);
    return result;
}

/* Under autocast the arguments are converted in the order in which compilers evaluate them: the
 * last one first. */
struct tensor *op_linear(struct engine *engine, struct tensor *input, struct tensor *weight,
                         struct tensor *bias)
{
    struct tensor *b = autocast_input(engine, bias), *w = autocast_input(engine, weight);
    struct tensor *x = autocast_input(engine, input);
    struct tensor *result = linear(engine, x, w, b);
    tensor_drop(engine, x);
    tensor_drop(engine, w);
    tensor_drop(engine, b);
    return result;
}

/* --- Conv2d ------------------------------------------------------------------------------ */

enum { KERNEL, STRIDE, PADDING }; /* of recipe.number */

static struct conv_call call_of(const struct node *node, enum conv_pass pass,
                                const struct shape *output)
{
    const uint64_t *number = node->recipe.number;
    return (struct conv_call){
        .pass = pass,
        .conv = {(int64_t)number[KERNEL], (int64_t)number[STRIDE], (int64_t)number[PADDING]},
        .dtype = node->recipe.dtype,
        .input = node->recipe.shape[0],
        .weight = node->recipe.shape[1],
        .output = *output,
    };
}

static void conv_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    if (node_wants(node, 0)) {
        struct conv_call call = call_of(node, CONV_INPUT_GRAD, &grads[0]->shape);
        results[0] = grad_of_input(engine, node);
        conv_workspace_use(engine, &call);
    }
    if (node_wants(node, 1)) {
        struct conv_call call = call_of(node, CONV_WEIGHT_GRAD, &grads[0]->shape);
        results[1] = grad_of_weight(engine, node);
        conv_workspace_use(engine, &call);
    }
    if (node_wants(node, 2)) {
        struct shape shape = {1, {node->recipe.shape[1].size[0]}};
        results[2] = tensor_new(engine, &shape, node->recipe.dtype);
    }
}

/* The size after a window of `kernel` has moved over `size`; below 1: it does not fit. */
static int64_t windows(int64_t size, struct conv conv)
{
    int64_t room = size + 2 * conv.padding - conv.kernel;
    return room < 0 ? 0 : room / conv.stride + 1;
}

static bool windowed_shape(struct engine *engine, const char *what, const struct tensor *input,
                           struct conv conv, struct shape *shape)
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
    engine_misuse(engine,
                  "%s with a window of %lld takes [batch, channels, height, width] at least as "
                  "large as the window, the input is %s",
                  what, (long long)conv.kernel, shape_text(&input->shape, text));
    return false;
}

static struct tensor *conv2d(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias, struct conv conv)
{
    struct shape shape;
    if (!input || !weight || !windowed_shape(engine, "Conv2d", input, conv, &shape)) {
        return NULL;
    }
    if (shape.size[1] != weight->shape.size[1]) {
        engine_misuse(engine, "Conv2d takes %lld channels, the input has %lld",
                      (long long)weight->shape.size[1], (long long)shape.size[1]);
        return NULL;
    }
    shape.size[1] = weight->shape.size[0];
    struct tensor *result = tensor_new(engine, &shape, input->dtype);
    struct conv_call call = {CONV_FORWARD, conv, input->dtype, input->shape, weight->shape, shape};
    conv_workspace_use(engine, &call);
    struct node *node =
        layer_node(engine, "ConvolutionBackward", conv_backward, input, weight, bias);
    if (node) {
        node->recipe.number[KERNEL] = (uint64_t)conv.kernel;
        node->recipe.number[STRIDE] = (uint64_t)conv.stride;
        node->recipe.number[PADDING] = (uint64_t)conv.padding;
        node_save(node, node_wants(node, 1) ? input : NULL);
        node_save(node, node_wants(node, 0) ? weight : NULL);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    return result;
}

struct tensor *op_conv2d(struct engine *engine, struct tensor *input, struct tensor *weight,
                         struct tensor *bias, struct conv conv)
{
    struct tensor *b = autocast_input(engine, bias), *w = autocast_input(engine, weight);
    struct tensor *x = autocast_input(engine, input);
    struct tensor *result = conv2d(engine, x, w, b, conv);
    tensor_drop(engine, x);
    tensor_drop(engine, w);
    tensor_drop(engine, b);
    return result;
}

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
        engine_misuse(engine, "BatchNorm2d takes %lld channels, the input is %s",
                      (long long)channels, shape_text(&input->shape, text));
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

/* --- pooling ----------------------------------------------------------------------------- */

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

struct tensor *op_global_avg_pool(struct engine *engine, struct tensor *input)
{
    char text[128];
    if (!input) {
        return NULL;
    }
    if (input->shape.dims != 4) {
        engine_misuse(engine,
                      "AdaptiveAvgPool2d takes [batch, channels, height, width], the input is "
                      "%s",
                      shape_text(&input->shape, text));
        return NULL;
    }
    struct shape shape = {4, {input->shape.size[0], input->shape.size[1], 1, 1}};
    struct tensor *result = tensor_new(engine, &shape, input->dtype);
    struct node *node = layer_node(engine, "MeanBackward", pool_backward, input, NULL, NULL);
    if (node) {
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    return result;
}
