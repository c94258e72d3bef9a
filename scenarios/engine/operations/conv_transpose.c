/* conv_transpose.c - transposed convolutions: the forward pass is the input's gradient of a
 * convolution, and the other way round. Facts: ATen/native/Convolution.cpp and cudnn/ConvShared.cpp
 * of PyTorch 2.11. */
#include "conv_workspace.h"
#include "gmd_autocast.h"
#include "gmd_layout.h"
#include "gmd_more_operations.h"
#include "layer_node.h"

/* Indices of recipe.number after those of the window. recipe.shape: input, weight, result. */
enum { FORMAT = CONV_NUMBERS, INPUT_COPY, WEIGHT_COPY };

/* The convolution that it is the transpose of takes the result and gives the input. */
static void run(struct engine *engine, enum conv_pass pass, const struct recipe *recipe)
{
    struct conv_call call = {.pass = pass,
                             .conv = conv_noted(recipe->number),
                             .dtype = recipe->dtype,
                             .input = recipe->shape[2],
                             .weight = recipe->shape[1],
                             .output = recipe->shape[0],
                             .format = (enum memory_format)recipe->number[FORMAT]};
    conv_workspace_use(engine, &call);
}

static void conv_transpose_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                    struct tensor **results)
{
    static const enum conv_pass passes[] = {CONV_FORWARD, CONV_WEIGHT_GRAD};
    const struct recipe *recipe = &node->recipe;
    enum memory_format format = (enum memory_format)recipe->number[FORMAT];
    struct tensor *grad = tensor_expect(engine, grads[0], format);
    struct storage *input = storage_new(engine, recipe->number[INPUT_COPY]);
    struct storage *weight = storage_new(engine, recipe->number[WEIGHT_COPY]);
    for (uint32_t i = 0; i < 2; i++) {
        if (node_wants(node, i)) {
            results[i] = tensor_new_as(engine, &recipe->shape[i], recipe->dtype, format);
            run(engine, passes[i], recipe);
        }
    }
    storage_drop(engine, weight);
    storage_drop(engine, input);
    if (node_wants(node, 2)) {
        struct shape channels = {1, {recipe->shape[2].size[1]}};
        results[2] = tensor_new(engine, &channels, recipe->dtype);
    }
    tensor_drop(engine, grad);
}

static bool result_shape(struct engine *engine, const struct tensor *input,
                         const struct tensor *weight, const struct conv *conv,
                         const int64_t output_padding[2], struct shape *shape)
{
    char text[128];
    *shape = input->shape;
    bool fits = shape->dims == 4 && shape->size[1] == weight->shape.size[0];
    shape->size[1] = weight->shape.size[1] * conv->groups;
    for (int i = 0; fits && i < 2; i++) {
        int64_t steps = (shape->size[2 + i] - 1) * conv->stride[i];
        int64_t window = conv->dilation[i] * (conv->kernel[i] - 1) + 1;
        shape->size[2 + i] = steps + window + output_padding[i] - 2 * conv->padding[i];
        fits = shape->size[2 + i] > 0;
    }
    if (!fits) {
        engine_misuse(engine,
                      "ConvTranspose2d takes [batch, %lld, height, width], as large as its padding "
                      "needs; the input is %s",
                      (long long)weight->shape.size[0], shape_text(&input->shape, text));
    }
    return fits;
}

static enum memory_format format_of(const struct tensor *input, const struct tensor *weight)
{
    bool has_last = tensor_format(input) == FORMAT_CHANNELS_LAST ||
                    tensor_format(weight) == FORMAT_CHANNELS_LAST;
    return has_last && input->dtype != DTYPE_FLOAT64 ? FORMAT_CHANNELS_LAST : FORMAT_ROWS;
}

static struct tensor *conv_transpose(struct engine *engine, struct tensor *input,
                                     struct tensor *weight, struct tensor *bias,
                                     const struct conv *conv, const struct shape *shape)
{
    enum memory_format format = format_of(input, weight);
    struct recipe recipe = {.shape = {input->shape, weight->shape, *shape}, .dtype = input->dtype};
    conv_note(recipe.number, conv);
    recipe.number[FORMAT] = format;
    recipe.number[INPUT_COPY] = tensor_lies_as(input, format) ? 0 : tensor_bytes(input);
    recipe.number[WEIGHT_COPY] = tensor_lies_as(weight, format) ? 0 : tensor_bytes(weight);
    struct tensor *x = tensor_expect(engine, input, format);
    struct tensor *w = tensor_expect(engine, weight, format);
    struct tensor *result = tensor_new_as(engine, shape, input->dtype, format);
    run(engine, CONV_INPUT_GRAD, &recipe);
    tensor_drop(engine, w);
    tensor_drop(engine, x);
    struct node *node =
        layer_node(engine, "ConvolutionBackward", conv_transpose_backward, input, weight, bias);
    if (node) {
        node->recipe = recipe;
        node_save(node, input); /* one function has all gradients, and both are kept for each */
        node_save(node, weight);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    return result;
}

struct tensor *op_conv_transpose2d(struct engine *engine, struct tensor *input,
                                   struct tensor *weight, struct tensor *bias, struct conv conv,
                                   const int64_t output_padding[2])
{
    struct shape shape;
    if (!input || !weight || !result_shape(engine, input, weight, &conv, output_padding, &shape)) {
        return NULL;
    }
    struct tensor *b = autocast_argument(engine, "conv_transpose2d", bias);
    struct tensor *w = autocast_argument(engine, "conv_transpose2d", weight);
    struct tensor *x = autocast_argument(engine, "conv_transpose2d", input);
    struct tensor *result = conv_transpose(engine, x, w, b, &conv, &shape);
    tensor_drop(engine, x);
    tensor_drop(engine, w);
    tensor_drop(engine, b);
    return result;
}
