/* rnn.c - LSTM and GRU as cuDNN runs them: one call for all layers and steps, a reserve space
 * that lives as long as the graph, and a workspace for the call. */
#include "gmd_layout.h"
#include "gmd_operations.h"

enum { EDGE_INPUT, EDGE_H, EDGE_C, EDGE_WEIGHTS };
/* indices of recipe.number; MATRIX_BYTES: the weights without the biases */
enum { KIND, STEP_BYTES, LAYERS, DIRECTIONS, WEIGHT_BYTES, MATRIX_BYTES, BATCH_FIRST, PACKED };

#define PRODUCT_ROOM ((uint64_t)8 << 20)

/* What cuDNN 9 took (shared/traces/hidden_*, seq2seq, and the "ops" recording): for each element of
 * an output of one layer and direction the gates and states that the way back needs, and the
 * outputs between layers. */
static uint64_t reserve_bytes(const struct recipe *recipe)
{
    uint64_t step = recipe->number[STEP_BYTES], layers = recipe->number[LAYERS];
    if (recipe->number[KIND] == RNN_LSTM) {
        return step * (6 * layers - 1) + 256;
    }
    return step * (7 * layers - 1) + 256;
}

/* The workspace holds the gradients of one layer's gates and output, copies of the weights and of
 * the input, and for each layer and direction the states of some steps and room for the products;
 * with two directions their outputs and states are separate. A GRU copies its input once more where
 * it has one layer, or several layers and two directions. Packed sequences in two directions need a
 * copy of the output and none of the input. The rules are fitted to the "ops" recording; cuDNN does
 * not document its reasons. */
static uint64_t workspace_bytes(const struct recipe *recipe)
{
    const uint64_t *number = recipe->number;
    bool lstm = number[KIND] == RNN_LSTM, both = number[DIRECTIONS] == 2, packed = number[PACKED];
    uint64_t networks = number[LAYERS] * number[DIRECTIONS];
    uint64_t states = shape_count(&recipe->shape[1]) * 4;
    uint64_t input = shape_count(&recipe->shape[0]) * 4;
    uint64_t apart = both && !packed ? 2 : 0;
    uint64_t outputs = (lstm ? 5 : 4) + apart + packed;
    uint64_t inputs = !lstm && (number[LAYERS] > 1) == both ? 2 : 1;
    return outputs * number[STEP_BYTES] + number[MATRIX_BYTES] + (packed ? 0 : inputs * input) +
           ((lstm ? 10 : 5) + apart) * states + networks * PRODUCT_ROOM + 512;
}

static struct tensor *shaped(struct engine *engine, const struct node *node, int index)
{
    return tensor_new(engine, &node->recipe.shape[index], node->recipe.dtype);
}

/* cuDNN wants the length first; a batch that comes first is copied. */
static struct tensor *by_step(struct engine *engine, const struct node *node, int index)
{
    return node->recipe.number[BATCH_FIRST] ? shaped(engine, node, index) : NULL;
}

/* A second call gives the gradients of all weights, as views of one buffer. */
static void weights_backward(struct engine *engine, struct node *node, struct tensor **results)
{
    struct tensor *input = by_step(engine, node, 0);
    struct shape all = {1, {(int64_t)(node->recipe.number[WEIGHT_BYTES] / 4)}};
    struct tensor *flat = tensor_new(engine, &all, DTYPE_FLOAT32);
    storage_scratch(engine, workspace_bytes(&node->recipe));
    for (uint32_t i = EDGE_WEIGHTS; i < node->edge_count; i++) {
        results[i] = tensor_view(engine, flat, &all);
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
    struct tensor *input = by_step(engine, node, 0);
    struct tensor *grad = by_step(engine, node, 2);
    struct tensor *data[3] = {NULL};
    data[0] = shaped(engine, node, 0);
    if (node->recipe.number[BATCH_FIRST]) {
        tensor_lay_swapped(data[0]);
        data[0]->is_view = true;
    }
    data[1] = shaped(engine, node, 1);
    data[2] = lstm ? shaped(engine, node, 1) : NULL;
    storage_scratch(engine, workspace_bytes(&node->recipe));
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
    for (uint32_t i = 0; i < 3; i++) {
        node_connect(engine, node, i, inputs[i]);
    }
    for (uint32_t i = 0; i < weights; i++) {
        node_connect(engine, node, EDGE_WEIGHTS + i, rnn->weights[i]);
    }
    node_save(node, inputs[EDGE_C]);
    node_save(node, inputs[EDGE_H]);
    node_save(node, inputs[EDGE_INPUT]);
    node_save(node, results[0]);
    node_save(node, reserve);
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

bool op_rnn(struct engine *engine, const struct rnn *rnn, struct tensor *input, struct tensor *h,
            struct tensor *c, struct tensor *results[3])
{
    struct tensor *const inputs[3] = {input, h, c};
    if (!input || !h || (rnn->kind == RNN_LSTM && !c) || !fits(engine, rnn, inputs)) {
        return false;
    }
    struct shape shape = input->shape;
    shape.size[2] = rnn->hidden * rnn->directions;
    struct tensor *copy = rnn->batch_first ? tensor_like(engine, input) : NULL;
    results[0] = tensor_new(engine, &shape, input->dtype);
    results[1] = tensor_like(engine, h);
    results[2] = c ? tensor_like(engine, c) : NULL;
    struct recipe recipe = {
        .shape = {input->shape, h->shape, shape},
        .dtype = input->dtype,
        .number = {rnn->kind, tensor_bytes(results[0]), (uint64_t)rnn->layers,
                   (uint64_t)rnn->directions, rnn->flat->bytes, matrix_bytes(rnn), rnn->batch_first,
                   rnn->packed},
    };
    struct shape flat = {1, {(int64_t)reserve_bytes(&recipe)}};
    bool tracked = tensor_tracked(engine, input) || tensor_tracked(engine, h) ||
                   tensor_tracked(engine, c) || tensor_tracked(engine, rnn->weights[0]);
    struct storage *workspace = storage_new(engine, workspace_bytes(&recipe));
    struct tensor *reserve = tracked ? tensor_new(engine, &flat, DTYPE_UINT8) : NULL;
    storage_drop(engine, workspace);
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
