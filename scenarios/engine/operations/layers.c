/* layers.c - linear layers and convolutions. */
#include "conv_workspace.h"
#include "gmd_autocast.h"
#include "gmd_layout.h"
#include "layer_node.h"
#include "products.h"
#include "reduce.h"

static struct tensor *grad_of_weight(struct engine *engine, const struct node *node)
{
    return tensor_new(engine, &node->recipe.shape[1], node->recipe.dtype);
}

/* Indices of recipe.number. COPIED: the input was no matrix and not contiguous; OPERAND_BYTES: what
 * cuBLAS copies the input to, or 0. */
enum { COPIED, HAS_BIAS, OPERAND_BYTES };

/* --- Linear ------------------------------------------------------------------------------ */

/* Arguments of addmm, as torch names them self, mat1 and mat2: their gradients go on in this order.
 */
enum { ADDED, ROWS, WEIGHT, ADDMM_ARGUMENTS };

static struct tensor *column_sum(struct engine *engine, const struct node *node,
                                 const struct tensor *rows)
{
    struct shape shape = {1, {node->recipe.shape[1].size[0]}};
    return (rows->expanded ? reduce_expanded_to : reduce_to)(engine, &rows->shape, &shape,
                                                             node->recipe.dtype);
}

/* The gradients of the weight and of the bias are views: of a transposed product, and of a sum that
 * kept its dimension. */
static void bias_backward(struct engine *engine, const struct node *node, const struct tensor *rows,
                          struct tensor **results)
{
    if (node_wants(node, ADDED)) {
        results[ADDED] = column_sum(engine, node, rows);
        results[ADDED]->is_view = true;
    }
}

/* A product with the rows of the gradient. */
static void weight_backward(struct engine *engine, const struct node *node, struct tensor *rows,
                            struct tensor **results)
{
    if (node_wants(node, WEIGHT)) {
        results[WEIGHT] = grad_of_weight(engine, node);
        results[WEIGHT]->is_view = true;
        product_run(engine, rows, node->recipe.number[OPERAND_BYTES]);
    }
}

static void input_backward(struct engine *engine, const struct node *node, struct tensor *rows,
                           struct tensor **results)
{
    if (node_wants(node, ROWS)) {
        results[ROWS] = grad_of_input(engine, node);
        /* a view of rows with the input's dimensions */
        results[ROWS]->is_view = node->recipe.shape[0].dims > 2;
        product_run(engine, rows, 0);
    }
}

/* The shape as rows of the last dimension. */
static struct shape rows_of(const struct shape *shape)
{
    int64_t columns = shape->size[shape->dims - 1];
    int64_t rows = columns ? (int64_t)(shape_count(shape) / (uint64_t)columns) : 0;
    return (struct shape){2, {rows, columns}};
}

/* A view, or a copy where the dimensions before the last do not lie as one; outside the graph. */
static struct tensor *seen_as_rows(struct engine *engine, struct tensor *tensor)
{
    int64_t stride[SHAPE_MAX_DIMS];
    struct shape rows = rows_of(&tensor->shape);
    return tensor_viewable(tensor, &rows, stride) ? tensor_laid(engine, tensor, &rows, stride)
                                                  : tensor_new(engine, &rows, tensor->dtype);
}

/* With a bias and a contiguous input it is addmm, whose arguments are mat1, mat2, self. Otherwise
 * it is mm (mat2, self) and the bias is added afterwards, so the backward pass goes through that
 * first. */
static void linear_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    struct tensor *rows = seen_as_rows(engine, grads[0]);
    tensor_drop(engine, grads[0]);
    grads[0] = NULL;
    if (node->recipe.number[COPIED] || !node->recipe.number[HAS_BIAS]) {
        bias_backward(engine, node, rows, results);
        weight_backward(engine, node, rows, results);
        input_backward(engine, node, rows, results);
    } else {
        input_backward(engine, node, rows, results);
        weight_backward(engine, node, rows, results);
        node_done_with_saved(engine, node);
        bias_backward(engine, node, rows, results);
    }
    tensor_drop(engine, rows);
}

/* The weight as it was multiplied: transposed twice, by nodes that give its gradient as a view. The
 * first of them is of the forward pass, the number before this node's. */
static struct tensor *weight_as_read(struct engine *engine, const struct node *node)
{
    struct tensor *weight = node_input(engine, node, WEIGHT, node->saved_count - 1);
    uint64_t sequence = engine->backward_sequence;
    struct tensor *turned = op_transpose(engine, weight, 0, 1);
    if (turned && turned->grad_fn) {
        turned->grad_fn->sequence = node->sequence - 1;
        engine->backward_sequence = sequence;
    }
    struct tensor *result = op_transpose(engine, turned, 0, 1);
    tensor_drop(engine, turned);
    tensor_drop(engine, weight);
    return result;
}

/* The gradient by the input as a product that is recorded; those by weight and bias are not known.
 */
static void linear_recorded(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    if (node_wants(node, ADDED) || node_wants(node, WEIGHT) || node->recipe.shape[0].dims != 2) {
        engine_misuse(engine, "create_graph: of a Linear the gradient by its input is known here, "
                              "a matrix");
        return;
    }
    struct tensor *weight = weight_as_read(engine, node);
    results[ROWS] = op_bmm(engine, grads[0], weight);
    tensor_drop(engine, weight);
}

static void record_linear(struct engine *engine, struct tensor *const arguments[3],
                          struct tensor *rows, bool is_fused, struct tensor *result)
{
    struct tensor *input = arguments[0], *weight = arguments[1], *bias = arguments[2];
    if (!tensor_tracked(engine, input) && !tensor_tracked(engine, weight) &&
        !tensor_tracked(engine, bias)) {
        return;
    }
    engine->sequence += tensor_tracked(engine, weight) && !engine->in_backward; /* transposed */
    struct node *node = node_new(engine, "AddmmBackward", linear_backward, ADDMM_ARGUMENTS);
    node_connect(engine, node, ADDED, bias);
    node_connect(engine, node, ROWS, input);
    node_connect(engine, node, WEIGHT, weight);
    node->recipe.shape[0] = input->shape;
    node->recipe.shape[1] = weight->shape;
    node->recipe.dtype = input->dtype;
    node->recipe.number[COPIED] = !is_fused;
    node->recipe.number[HAS_BIAS] = bias != NULL;
    node->recipe.number[OPERAND_BYTES] = product_reads(rows) ? 0 : tensor_bytes(rows);
    node->recorded = linear_recorded;
    node_save(node, node_wants(node, WEIGHT) ? rows : NULL);
    node_save(node, node_wants(node, ROWS) ? weight : NULL);
    node_result(node, 0, result);
    node_drop(engine, node);
}

/* A matrix is read as it lies. With more dimensions the rows are one: where they do not lie as one
 * matrix, they are copied, and the copy is what the gradient of the weight needs. */
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
    if (!same_types(engine, "Linear", input, weight)) {
        return NULL;
    }
    shape.size[shape.dims - 1] = weight->shape.size[0];
    bool is_fused = shape.dims == 2 || !input->transposed;
    struct tensor *rows = seen_as_rows(engine, input);
    struct tensor *result = tensor_new(engine, &shape, input->dtype);
    struct tensor *copy = product_reads(rows) ? NULL : tensor_like(engine, rows);
    cublas_workspace_use(engine, bias && is_fused); /* else the bias is added after */
    tensor_drop(engine, copy);
    struct tensor *const arguments[] = {input, weight, bias};
    record_linear(engine, arguments, rows, is_fused, result);
    tensor_drop(engine, rows);
    return result;
}

/* Under autocast the arguments are converted in the order in which compilers evaluate them: the
 * last one first. */
struct tensor *op_linear(struct engine *engine, struct tensor *input, struct tensor *weight,
                         struct tensor *bias)
{
    struct tensor *b = autocast_argument(engine, "linear", bias);
    struct tensor *w = autocast_argument(engine, "linear", weight);
    struct tensor *x = autocast_argument(engine, "linear", input);
    struct tensor *result = linear(engine, x, w, b);
    tensor_drop(engine, x);
    tensor_drop(engine, w);
    tensor_drop(engine, b);
    return result;
}

/* --- Conv2d ------------------------------------------------------------------------------ */

/* Indices of recipe.number after those of the window: the format that cuDNN works in, and the bytes
 * of the copies that it needs of input and weight, or 0. */
enum { CONV_FORMAT = CONV_NUMBERS, CONV_INPUT_COPY, CONV_WEIGHT_COPY };

static struct conv_call call_of(const struct node *node, enum conv_pass pass,
                                const struct shape *output)
{
    return (struct conv_call){
        .pass = pass,
        .conv = conv_noted(node->recipe.number),
        .dtype = node->recipe.dtype,
        .input = node->recipe.shape[0],
        .weight = node->recipe.shape[1],
        .output = *output,
        .format = (enum memory_format)node->recipe.number[CONV_FORMAT],
    };
}

/* The gradient of the input or, second, of the weight, as cuDNN computes it. */
static void conv_gradient(struct engine *engine, struct node *node, uint32_t i,
                          const struct tensor *grad)
{
    struct conv_call call = call_of(node, i ? CONV_WEIGHT_GRAD : CONV_INPUT_GRAD, &grad->shape);
    conv_workspace_use(engine, &call);
}

/* The input's gradient is there before that of the result is copied, if it has to be: so it was in
 * recordings. */
static void conv_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    const struct recipe *recipe = &node->recipe;
    enum memory_format format = (enum memory_format)recipe->number[CONV_FORMAT];
    if (node_wants(node, 0)) {
        results[0] = tensor_new_as(engine, &recipe->shape[0], recipe->dtype, format);
    }
    struct tensor *grad = tensor_expect(engine, grads[0], format);
    struct storage *input = storage_new(engine, recipe->number[CONV_INPUT_COPY]);
    struct storage *weight = storage_new(engine, recipe->number[CONV_WEIGHT_COPY]);
    if (node_wants(node, 0)) {
        conv_gradient(engine, node, 0, grads[0]);
    }
    if (node_wants(node, 1)) {
        results[1] = tensor_new_as(engine, &recipe->shape[1], recipe->dtype, format);
        conv_gradient(engine, node, 1, grads[0]);
    }
    storage_drop(engine, weight);
    storage_drop(engine, input);
    if (node_wants(node, 2)) {
        struct shape shape = {1, {recipe->shape[1].size[0]}};
        results[2] = tensor_new(engine, &shape, recipe->dtype);
    }
    tensor_drop(engine, grad);
}

/* Channels last if one of them lies so, but not in 64 bits. */
static enum memory_format conv_format(const struct tensor *input, const struct tensor *weight)
{
    bool has_last = tensor_format(input) == FORMAT_CHANNELS_LAST ||
                    tensor_format(weight) == FORMAT_CHANNELS_LAST;
    return has_last && input->dtype != DTYPE_FLOAT64 ? FORMAT_CHANNELS_LAST : FORMAT_ROWS;
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
    if (!same_types(engine, "Conv2d", input, weight)) {
        return NULL;
    }
    shape.size[1] = weight->shape.size[0];
    enum memory_format format = conv_format(input, weight);
    struct tensor *x = tensor_expect(engine, input, format);
    struct tensor *w = tensor_expect(engine, weight, format);
    struct tensor *result = tensor_new_as(engine, &shape, input->dtype, format);
    struct conv_call call = {CONV_FORWARD,  conv,  input->dtype, input->shape,
                             weight->shape, shape, format};
    conv_workspace_use(engine, &call);
    tensor_drop(engine, w);
    tensor_drop(engine, x);
    struct node *node =
        layer_node(engine, "ConvolutionBackward", conv_backward, input, weight, bias);
    if (node) {
        conv_note(node->recipe.number, &conv);
        node->recipe.number[CONV_FORMAT] = format;
        node->recipe.number[CONV_INPUT_COPY] =
            tensor_lies_as(input, format) ? 0 : tensor_bytes(input);
        node->recipe.number[CONV_WEIGHT_COPY] =
            tensor_lies_as(weight, format) ? 0 : tensor_bytes(weight);
        node_save(node, input); /* one function has all gradients, and both are kept for each */
        node_save(node, weight);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    return result;
}

/* torch sees input and weight as images of height 1. */
static struct tensor *conv1d(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias, struct conv conv)
{
    char text[128];
    if (!input || input->shape.dims != 3) {
        if (input) {
            engine_misuse(engine, "Conv1d takes [batch, channels, length], the input is %s",
                          shape_text(&input->shape, text));
        }
        return NULL;
    }
    struct tensor *image = op_unsqueeze(engine, input, 2);
    struct tensor *window = op_unsqueeze(engine, weight, 2);
    struct tensor *rows = conv2d(engine, image, window, bias, conv);
    struct tensor *result = op_squeeze(engine, rows, 1u << 2);
    tensor_drop(engine, rows);
    tensor_drop(engine, window);
    tensor_drop(engine, image);
    return result;
}

typedef struct tensor *(*conv_fn)(struct engine *engine, struct tensor *input,
                                  struct tensor *weight, struct tensor *bias, struct conv conv);

static struct tensor *under_autocast(struct engine *engine, const char *name, conv_fn apply,
                                     struct tensor *const arguments[3], struct conv conv)
{
    struct tensor *as[3];
    for (int i = 2; i >= 0; i--) {
        as[i] = autocast_argument(engine, name, arguments[i]);
    }
    struct tensor *result = apply(engine, as[0], as[1], as[2], conv);
    for (int i = 0; i < 3; i++) {
        tensor_drop(engine, as[i]);
    }
    return result;
}

struct tensor *op_conv2d(struct engine *engine, struct tensor *input, struct tensor *weight,
                         struct tensor *bias, struct conv conv)
{
    struct tensor *const arguments[3] = {input, weight, bias};
    return under_autocast(engine, "conv2d", conv2d, arguments, conv);
}

struct tensor *op_conv1d(struct engine *engine, struct tensor *input, struct tensor *weight,
                         struct tensor *bias, struct conv conv)
{
    struct tensor *const arguments[3] = {input, weight, bias};
    return under_autocast(engine, "conv1d", conv1d, arguments, conv);
}
