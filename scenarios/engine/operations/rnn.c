/* rnn.c - LSTM and GRU as cuDNN runs them: one call for all layers and steps, a reserve space
 * that lives as long as the graph, and a workspace for the call. */
#include "gmd_autocast.h"
#include "gmd_layout.h"
#include "rnn_model.h"

enum { EDGE_INPUT, EDGE_H, EDGE_C, EDGE_WEIGHTS };
/* indices of recipe.number; MATRIX_BYTES: the weights without the biases */
enum {
    KIND,
    STEP_BYTES,
    LAYERS,
    DIRECTIONS,
    WEIGHT_BYTES,
    MATRIX_BYTES,
    BATCH_FIRST,
    PACKED,
    COPIES_INPUT,
    DROPS,
    TRAINING
};

static struct rnn_call call_of(const struct recipe *recipe, enum gmd_workspace_op op)
{
    const uint64_t *number = recipe->number;
    bool by_batch = number[BATCH_FIRST];
    return (struct rnn_call){
        .op = op,
        .lstm = number[KIND] == RNN_LSTM,
        .packed = number[PACKED],
        .training = number[TRAINING],
        .drops = number[DROPS],
        .dtype = recipe->dtype,
        .batch = recipe->shape[0].size[by_batch ? 0 : 1],
        .length = recipe->shape[0].size[by_batch ? 1 : 0],
        .features = recipe->shape[0].size[2],
        .hidden = recipe->shape[1].size[2],
        .layers = (int64_t)number[LAYERS],
        .directions = (int64_t)number[DIRECTIONS],
        .step_bytes = number[STEP_BYTES],
        .matrix_bytes = number[MATRIX_BYTES],
    };
}

static void backward_workspace(struct engine *engine, const struct node *node)
{
    struct rnn_call call = call_of(&node->recipe, GMD_RNN_BACKWARD);
    storage_scratch(engine, rnn_workspace_bytes(engine, &call));
    workspace_taken(engine);
}

static struct tensor *shaped(struct engine *engine, const struct node *node, int index)
{
    return tensor_new(engine, &node->recipe.shape[index], node->recipe.dtype);
}

/* The length first, as cuDNN wants it: a view. */
static struct tensor *by_length(struct engine *engine, struct tensor *tensor, bool batch_first)
{
    static const int swapped[SHAPE_MAX_DIMS] = {1, 0, 2, 3, 4, 5};
    return batch_first ? tensor_permuted(engine, tensor, swapped) : tensor_keep(tensor);
}

/* Its copy where it does not lie so; a batch of one does, in both orders. NULL: there is none. */
static struct tensor *copy_by_step(struct engine *engine, struct tensor *tensor, bool batch_first)
{
    struct tensor *view = by_length(engine, tensor, batch_first);
    struct tensor *copy = view->transposed ? tensor_like(engine, tensor) : NULL;
    tensor_drop(engine, view);
    return copy;
}

static struct tensor *saved_input_by_step(struct engine *engine, const struct node *node)
{
    return node->recipe.number[COPIES_INPUT] ? shaped(engine, node, 0) : NULL;
}

/* A second call gives the gradients of all weights, as parts of one buffer; made below autograd,
 * they do not keep a base, so that the last one of them is added into in place. */
static void weights_backward(struct engine *engine, struct node *node, struct tensor **results)
{
    struct tensor *input = saved_input_by_step(engine, node);
    enum dtype dtype = node->recipe.dtype;
    struct shape all = {1, {(int64_t)(node->recipe.number[WEIGHT_BYTES] / dtype_bytes(dtype))}};
    struct tensor *flat = tensor_new(engine, &all, dtype);
    backward_workspace(engine, node);
    for (uint32_t i = EDGE_WEIGHTS; i < node->edge_count; i++) {
        struct shape part = {1, {node->sizes[i - EDGE_WEIGHTS]}};
        results[i] = tensor_view(engine, flat, &part);
        results[i]->is_view = false;
    }
    tensor_drop(engine, flat);
    tensor_drop(engine, input);
}

static void rnn_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    bool lstm = node->recipe.number[KIND] == RNN_LSTM;
    struct tensor *zero_output = grads[0] ? NULL : shaped(engine, node, 2);
    struct tensor *zero_h = grads[1] ? NULL : shaped(engine, node, 1);
    struct tensor *zero_c = grads[2] || !lstm ? NULL : shaped(engine, node, 1);
    struct tensor *input = saved_input_by_step(engine, node);
    struct tensor *output = grads[0] ? grads[0] : zero_output;
    struct tensor *grad = copy_by_step(engine, output, node->recipe.number[BATCH_FIRST]);
    struct tensor *data[3] = {NULL};
    data[0] = shaped(engine, node, 0);
    if (node->recipe.number[BATCH_FIRST]) {
        tensor_lay_swapped(data[0]);
        data[0]->is_view = true;
    }
    data[1] = shaped(engine, node, 1);
    data[2] = lstm ? shaped(engine, node, 1) : NULL;
    backward_workspace(engine, node);
    tensor_drop(engine, grad);
    tensor_drop(engine, input);
    if (node_wants(node, EDGE_WEIGHTS)) {
        weights_backward(engine, node, results);
    }
    tensor_drop(engine, zero_c);
    tensor_drop(engine, zero_h);
    tensor_drop(engine, zero_output);
    for (uint32_t i = 0; i < 3; i++) {
        if (node_wants(node, i)) {
            results[i] = data[i];
        } else {
            tensor_drop(engine, data[i]);
        }
    }
}

static void record(struct engine *engine, const struct rnn *rnn, struct tensor *const inputs[3],
                   struct tensor *results[3], struct tensor *reserve, const struct recipe *recipe)
{
    uint32_t weights = (uint32_t)rnn->weight_count;
    struct node *node = node_new(engine, "CudnnRnnBackward", rnn_backward, EDGE_WEIGHTS + weights);
    node->recipe = *recipe;
    node->sizes = host_take(engine, weights * sizeof(int64_t));
    for (uint32_t i = 0; i < 3; i++) {
        node_connect(engine, node, i, inputs[i]);
    }
    for (uint32_t i = 0; i < weights; i++) {
        node->sizes[i] = (int64_t)shape_count(&rnn->weights[i]->shape);
        node_connect(engine, node, EDGE_WEIGHTS + i, rnn->weights[i]);
    }
    node_save(node, inputs[EDGE_C]);
    node_save(node, inputs[EDGE_H]);
    node_save(node, inputs[EDGE_INPUT]);
    node_save(node, results[0]);
    node_save(node, reserve);
    if (rnn->weights[0]->grad_fn) {
        node_save(node, rnn->weights[0]); /* copies in one buffer that nobody else has */
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (results[i]) {
            node_result(node, i, results[i]);
        }
    }
    node_drop(engine, node);
}

static bool fits(struct engine *engine, const struct rnn *rnn, struct tensor *const inputs[3])
{
    char text[128];
    const char *name = rnn->kind == RNN_LSTM ? "LSTM" : "GRU";
    const struct shape *input = &inputs[0]->shape;
    int64_t features = rnn->weights[0]->shape.size[1];
    if (input->dims != 3 || input->size[2] != features) {
        engine_misuse(engine, "%s takes [%s, %lld], the input is %s", name,
                      rnn->batch_first ? "batch, length" : "length, batch", (long long)features,
                      shape_text(input, text));
        return false;
    }
    struct shape shape = {
        3, {rnn->layers * rnn->directions, input->size[rnn->batch_first ? 0 : 1], rnn->hidden}};
    for (int i = 1; i < 3; i++) {
        if (inputs[i] && shape_count(&inputs[i]->shape) != shape_count(&shape)) {
            engine_misuse(engine, "%s takes states of [%lld, %lld, %lld], h is %s", name,
                          (long long)shape.size[0], (long long)shape.size[1],
                          (long long)shape.size[2], shape_text(&inputs[i]->shape, text));
            return false;
        }
    }
    return true;
}

static uint64_t matrix_bytes(const struct rnn *rnn)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < rnn->weight_count; i++) {
        bytes += rnn->weights[i]->shape.dims == 2 ? tensor_bytes(rnn->weights[i]) : 0;
    }
    return bytes;
}

static bool run(struct engine *engine, const struct rnn *rnn, struct tensor *const inputs[3],
                struct tensor *results[3])
{
    struct tensor *input = inputs[EDGE_INPUT], *h = inputs[EDGE_H], *c = inputs[EDGE_C];
    struct shape shape = input->shape;
    shape.size[2] = rnn->hidden * rnn->directions;
    struct tensor *copy = copy_by_step(engine, input, rnn->batch_first);
    results[0] = tensor_new(engine, &shape, input->dtype);
    results[1] = tensor_like(engine, h);
    results[2] = c ? tensor_like(engine, c) : NULL;
    bool tracked = tensor_tracked(engine, input) || tensor_tracked(engine, h) ||
                   tensor_tracked(engine, c) || tensor_tracked(engine, rnn->weights[0]);
    struct recipe recipe = {
        .shape = {input->shape, h->shape, shape},
        .dtype = input->dtype,
        .number = {rnn->kind, tensor_bytes(results[0]), (uint64_t)rnn->layers,
                   (uint64_t)rnn->directions, rnn->flat->bytes, matrix_bytes(rnn), rnn->batch_first,
                   rnn->packed, copy != NULL, rnn->dropout > 0, tracked},
    };
    if (rnn->dropout > 0) {
        cudnn_dropout_use(engine);
    }
    struct rnn_call call = call_of(&recipe, GMD_RNN_FORWARD);
    struct shape flat = {1, {(int64_t)rnn_reserve_bytes(engine, &call)}};
    struct storage *workspace = storage_new(engine, rnn_workspace_bytes(engine, &call));
    struct tensor *reserve = tracked ? tensor_new(engine, &flat, DTYPE_UINT8) : NULL;
    storage_drop(engine, workspace);
    workspace_taken(engine);
    if (tracked) {
        record(engine, rnn, inputs, results, reserve, &recipe);
    }
    if (rnn->batch_first) {
        tensor_lay_swapped(results[0]); /* a view of what cuDNN wrote, the length first */
    }
    tensor_drop(engine, reserve);
    tensor_drop(engine, copy);
    return true;
}

/* --- under autocast: all in float16, and the weights in a block of their own -------------- */

/* Each weight was copied into its part of the block: its gradient is converted back. */
static void copied_weights_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                    struct tensor **results)
{
    for (uint32_t i = 0; i < node->edge_count; i++) {
        if (grads[i] && node_wants(node, i)) {
            results[i] = op_cast(engine, grads[i], DTYPE_FLOAT32);
        }
    }
}

static struct rnn in_half(struct engine *engine, const struct rnn *rnn)
{
    struct rnn half = *rnn;
    uint32_t count = (uint32_t)rnn->weight_count;
    struct shape all = {1, {(int64_t)(rnn->flat->bytes / dtype_bytes(rnn->weights[0]->dtype))}};
    struct tensor *flat = tensor_new(engine, &all, DTYPE_FLOAT16);
    half.weights = host_take(engine, count * sizeof(struct tensor *));
    half.flat = storage_keep(flat->storage);
    bool tracked = tensor_tracked(engine, rnn->weights[0]);
    struct node *node =
        tracked ? node_new(engine, "CopySlices", copied_weights_backward, count) : NULL;
    if (node) {
        node_outputs(engine, node, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        half.weights[i] = tensor_view(engine, flat, &rnn->weights[i]->shape);
        if (node) {
            node_connect(engine, node, i, rnn->weights[i]);
            node_result(node, i, half.weights[i]);
        }
    }
    node_drop(engine, node);
    tensor_drop(engine, flat);
    return half;
}

static void give_back(struct engine *engine, struct rnn *half)
{
    for (size_t i = 0; i < half->weight_count; i++) {
        tensor_drop(engine, half->weights[i]);
    }
    host_give(engine, half->weights);
    storage_drop(engine, half->flat);
}

/* The weights are copied at each call. */
static bool run_in_half(struct engine *engine, const struct rnn *rnn,
                        struct tensor *const inputs[3], struct tensor *results[3])
{
    struct tensor *as[3];
    struct rnn half = in_half(engine, rnn);
    for (int i = 2; i >= 0; i--) {
        as[i] = autocast_argument(engine, "rnn", inputs[i]);
    }
    bool done = run(engine, &half, as, results);
    for (int i = 0; i < 3; i++) {
        tensor_drop(engine, as[i]);
    }
    give_back(engine, &half);
    return done;
}

bool op_rnn(struct engine *engine, const struct rnn *rnn, struct tensor *input, struct tensor *h,
            struct tensor *c, struct tensor *results[3])
{
    struct tensor *const inputs[3] = {input, h, c};
    if (!input || !h || (rnn->kind == RNN_LSTM && !c) || !fits(engine, rnn, inputs)) {
        return false;
    }
    bool converts = autocast_converts(engine, "rnn", rnn->weights[0]);
    return converts ? run_in_half(engine, rnn, inputs, results) : run(engine, rnn, inputs, results);
}
