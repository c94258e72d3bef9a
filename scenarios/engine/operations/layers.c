/* layers.c - linear layers and convolutions. */
#include "conv_workspace.h"
#include "gmd_autocast.h"
#include "gmd_operations.h"
#include "layer_node.h"
#include "reduce.h"

static struct tensor *grad_of_weight(struct engine *engine, const struct node *node)
{
    return tensor_new(engine, &node->recipe.shape[1], node->recipe.dtype);
}

enum { COPIED, HAS_BIAS }; /* of recipe.number; COPIED: the input was not contiguous */

/* --- Linear ------------------------------------------------------------------------------ */

/* Arguments of addmm, as torch names them self, mat1 and mat2: their gradients go on in this order.
 */
enum { ADDED, ROWS, WEIGHT, ADDMM_ARGUMENTS };

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
    if (node_wants(node, ADDED)) {
        uint64_t features = (uint64_t)node->recipe.shape[1].size[1];
        uint64_t rows = shape_count(&node->recipe.shape[0]) / features;
        results[ADDED] = column_sum(engine, node, rows);
        results[ADDED]->is_view = true;
    }
}

static void weight_backward(struct engine *engine, const struct node *node, struct tensor **results)
{
    if (node_wants(node, WEIGHT)) {
        results[WEIGHT] = grad_of_weight(engine, node);
        results[WEIGHT]->is_view = true;
        cublas_workspace_use(engine, false);
    }
}

static void input_backward(struct engine *engine, const struct node *node, struct tensor **results)
{
    if (node_wants(node, ROWS)) {
        results[ROWS] = grad_of_input(engine, node);
        /* a view of rows with the input's dimensions */
        results[ROWS]->is_view = node->recipe.shape[0].dims > 2;
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

static struct node *addmm_node(struct engine *engine, struct tensor *input, struct tensor *weight,
                               struct tensor *bias)
{
    struct node *node = node_new(engine, "AddmmBackward", linear_backward, ADDMM_ARGUMENTS);
    node_connect(engine, node, ADDED, bias);
    node_connect(engine, node, ROWS, input);
    node_connect(engine, node, WEIGHT, weight);
    node->recipe.shape[0] = input->shape;
    node->recipe.shape[1] = weight->shape;
    node->recipe.dtype = input->dtype;
    node->recipe.number[COPIED] = input->transposed;
    node->recipe.number[HAS_BIAS] = bias != NULL;
    return node;
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
    if (tensor_tracked(engine, input) || tensor_tracked(engine, weight) ||
        tensor_tracked(engine, bias)) {
        struct node *node = addmm_node(engine, input, weight, bias);
        node_save(node, node_wants(node, WEIGHT) ? rows : NULL);
        node_save(node, node_wants(node, ROWS) ? weight : NULL);
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

static struct conv_call call_of(const struct node *node, enum conv_pass pass,
                                const struct shape *output)
{
    const uint64_t *number = node->recipe.number;
    struct conv conv = {.groups = (int64_t)number[8]};
    for (int i = 0; i < 2; i++) {
        conv.kernel[i] = (int64_t)number[i];
        conv.stride[i] = (int64_t)number[2 + i];
        conv.padding[i] = (int64_t)number[4 + i];
        conv.dilation[i] = (int64_t)number[6 + i];
    }
    return (struct conv_call){
        .pass = pass,
        .conv = conv,
        .dtype = node->recipe.dtype,
        .input = node->recipe.shape[0],
        .weight = node->recipe.shape[1],
        .output = *output,
    };
}

static void note_conv(struct node *node, const struct conv *conv)
{
    uint64_t *number = node->recipe.number;
    for (int i = 0; i < 2; i++) {
        number[i] = (uint64_t)conv->kernel[i];
        number[2 + i] = (uint64_t)conv->stride[i];
        number[4 + i] = (uint64_t)conv->padding[i];
        number[6 + i] = (uint64_t)conv->dilation[i];
    }
    number[8] = (uint64_t)conv->groups;
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

static struct tensor *conv2d(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias, struct conv conv)
{
    struct shape shape;
    if (!input || !weight || !windowed_shape(engine, "Conv2d", input, conv, &shape)) {
        return NULL;
    }
    int64_t channels = weight->shape.size[1] * conv.groups;
    if (shape.size[1] != channels) {
        engine_misuse(engine, "Conv2d takes %lld channels, the input has %lld", (long long)channels,
                      (long long)shape.size[1]);
        return NULL;
    }
    shape.size[1] = weight->shape.size[0];
    struct tensor *result = tensor_new(engine, &shape, input->dtype);
    struct conv_call call = {CONV_FORWARD, conv, input->dtype, input->shape, weight->shape, shape};
    conv_workspace_use(engine, &call);
    struct node *node =
        layer_node(engine, "ConvolutionBackward", conv_backward, input, weight, bias);
    if (node) {
        note_conv(node, &conv);
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
