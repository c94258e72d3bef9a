/* rnn.c - LSTM and GRU as cuDNN runs them: one call for all layers and steps, a reserve space
 * that lives as long as the graph, and a workspace for the call. */
#include "gmd_operations.h"

enum { EDGE_INPUT, EDGE_H, EDGE_C, EDGE_WEIGHTS };
/* of recipe.number; MATRIX_BYTES: of the weights without the biases */
enum { KIND, STEP_BYTES, LAYERS, DIRECTIONS, WEIGHT_BYTES, MATRIX_BYTES, BATCH_FIRST, PACKED };

#define PRODUCT_ROOM ((uint64_t)8 << 20)

/* What cuDNN 9 took (shared/traces/hidden_*, seq2seq, and the "ops" recording): for each element of
 * an output of one layer and direction the gates and states that the way back needs, and the
 * outputs between layers. */
static uint64_t reserve_bytes(const gmd_recipe *recipe)
{
    uint64_t step = recipe->number[STEP_BYTES], layers = recipe->number[LAYERS];
    if (recipe->number[KIND] == GMD_LSTM) {
        return step * (6 * layers - 1) + 256;
    }
    return step * (7 * layers - 1) + 256;
}

/* The gradients of the gates of one layer and of what it gave, copies of the weights and of the
 * input, and for each layer and direction some steps' states and room for the products; with two
 * directions their outputs and states apart. A GRU of one layer copies its input once more, and one
 * of two directions does with several layers. Packed sequences of two directions need no copy of
 * the input, but one of the output. (The "ops" recording; why is cuDNN's own affair.) */
static uint64_t workspace_bytes(const gmd_recipe *recipe)
{
    const uint64_t *number = recipe->number;
    bool lstm = number[KIND] == GMD_LSTM, both = number[DIRECTIONS] == 2, packed = number[PACKED];
    uint64_t networks = number[LAYERS] * number[DIRECTIONS];
    uint64_t states = gmd_shape_count(&recipe->shape[1]) * 4;
    uint64_t input = gmd_shape_count(&recipe->shape[0]) * 4;
    uint64_t apart = both && !packed ? 2 : 0;
    uint64_t outputs = (lstm ? 5 : 4) + apart + packed;
    uint64_t inputs = !lstm && (number[LAYERS] > 1) == both ? 2 : 1;
    return outputs * number[STEP_BYTES] + number[MATRIX_BYTES] + (packed ? 0 : inputs * input) +
           ((lstm ? 10 : 5) + apart) * states + networks * PRODUCT_ROOM + 512;
}

static gmd_tensor *shaped(gmd_engine *engine, const gmd_node *node, int index)
{
    return gmd_tensor_new(engine, &node->recipe.shape[index], node->recipe.dtype);
}

/* cuDNN wants the length first; a batch that comes first is copied. */
static gmd_tensor *by_step(gmd_engine *engine, const gmd_node *node, int index)
{
    return node->recipe.number[BATCH_FIRST] ? shaped(engine, node, index) : NULL;
}

/* From a second call: the gradients of all weights in one buffer, of which each is a view. */
static void weights_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **results)
{
    gmd_tensor *input = by_step(engine, node, 0);
    gmd_shape all = {1, {(int64_t)(node->recipe.number[WEIGHT_BYTES] / 4)}};
    gmd_tensor *flat = gmd_tensor_new(engine, &all, GMD_FLOAT32);
    gmd_scratch(engine, workspace_bytes(&node->recipe));
    for (uint32_t i = EDGE_WEIGHTS; i < node->edge_count; i++) {
        results[i] = gmd_tensor_view(engine, flat, &all);
    }
    gmd_tensor_drop(engine, flat);
    gmd_tensor_drop(engine, input);
}

static void rnn_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                         gmd_tensor **results)
{
    bool lstm = node->recipe.number[KIND] == GMD_LSTM;
    gmd_tensor *zero_output = grads[0] ? NULL : shaped(engine, node, 2);
    gmd_tensor *zero_h = grads[1] ? NULL : shaped(engine, node, 1);
    gmd_tensor *zero_c = grads[2] || !lstm ? NULL : shaped(engine, node, 1);
    gmd_tensor *input = by_step(engine, node, 0);
    gmd_tensor *grad = by_step(engine, node, 2);
    gmd_tensor *data[3] = {NULL};
    data[0] = shaped(engine, node, 0);
    data[0]->is_view = data[0]->transposed = node->recipe.number[BATCH_FIRST] != 0;
    data[1] = shaped(engine, node, 1);
    data[2] = lstm ? shaped(engine, node, 1) : NULL;
    gmd_scratch(engine, workspace_bytes(&node->recipe));
    gmd_tensor_drop(engine, grad);
    gmd_tensor_drop(engine, input);
    if (gmd_node_wants(node, EDGE_WEIGHTS)) {
        weights_backward(engine, node, results);
    }
    gmd_tensor_drop(engine, zero_c);
    gmd_tensor_drop(engine, zero_h);
    gmd_tensor_drop(engine, zero_output);
    for (uint32_t i = 0; i < 3; i++) {
        if (gmd_node_wants(node, i)) {
            results[i] = data[i];
        } else {
            gmd_tensor_drop(engine, data[i]);
        }
    }
}

static void record(gmd_engine *engine, const gmd_rnn *rnn, gmd_tensor *const inputs[3],
                   gmd_tensor *results[3], gmd_tensor *reserve, const gmd_recipe *recipe)
{
    uint32_t weights = (uint32_t)rnn->weight_count;
    gmd_node *node = gmd_node_new(engine, "CudnnRnnBackward", rnn_backward, EDGE_WEIGHTS + weights);
    node->recipe = *recipe;
    for (uint32_t i = 0; i < 3; i++) {
        gmd_node_connect(engine, node, i, inputs[i]);
    }
    for (uint32_t i = 0; i < weights; i++) {
        gmd_node_connect(engine, node, EDGE_WEIGHTS + i, rnn->weights[i]);
    }
    gmd_node_save(node, inputs[EDGE_C]);
    gmd_node_save(node, inputs[EDGE_H]);
    gmd_node_save(node, inputs[EDGE_INPUT]);
    gmd_node_save(node, results[0]);
    gmd_node_save(node, reserve);
    for (uint32_t i = 0; i < 3; i++) {
        if (results[i]) {
            gmd_node_result(node, i, results[i]);
        }
    }
    gmd_node_drop(engine, node);
}

static bool fits(gmd_engine *engine, const gmd_rnn *rnn, gmd_tensor *const inputs[3])
{
    char text[128];
    const char *name = rnn->kind == GMD_LSTM ? "LSTM" : "GRU";
    const gmd_shape *input = &inputs[0]->shape;
    int64_t features = rnn->weights[0]->shape.size[1];
    if (input->dims != 3 || input->size[2] != features) {
        gmd_misuse(engine, "%s takes [%s, %lld], the input is %s", name,
                   rnn->batch_first ? "batch, length" : "length, batch", (long long)features,
                   gmd_shape_text(input, text));
        return false;
    }
    gmd_shape shape = {
        3, {rnn->layers * rnn->directions, input->size[rnn->batch_first ? 0 : 1], rnn->hidden}};
    for (int i = 1; i < 3; i++) {
        if (inputs[i] && gmd_shape_count(&inputs[i]->shape) != gmd_shape_count(&shape)) {
            gmd_misuse(engine, "%s takes states of [%lld, %lld, %lld], h is %s", name,
                       (long long)shape.size[0], (long long)shape.size[1], (long long)shape.size[2],
                       gmd_shape_text(&inputs[i]->shape, text));
            return false;
        }
    }
    return true;
}

static uint64_t matrix_bytes(const gmd_rnn *rnn)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < rnn->weight_count; i++) {
        bytes += rnn->weights[i]->shape.dims == 2 ? gmd_tensor_bytes(rnn->weights[i]) : 0;
    }
    return bytes;
}

bool gmd_op_rnn(gmd_engine *engine, const gmd_rnn *rnn, gmd_tensor *input, gmd_tensor *h,
                gmd_tensor *c, gmd_tensor *results[3])
{
    gmd_tensor *const inputs[3] = {input, h, c};
    if (!input || !h || (rnn->kind == GMD_LSTM && !c) || !fits(engine, rnn, inputs)) {
        return false;
    }
    gmd_shape shape = input->shape;
    shape.size[2] = rnn->hidden * rnn->directions;
    gmd_tensor *copy = rnn->batch_first ? gmd_tensor_like(engine, input) : NULL;
    results[0] = gmd_tensor_new(engine, &shape, input->dtype);
    results[1] = gmd_tensor_like(engine, h);
    results[2] = c ? gmd_tensor_like(engine, c) : NULL;
    gmd_recipe recipe = {
        .shape = {input->shape, h->shape, shape},
        .dtype = input->dtype,
        .number = {rnn->kind, gmd_tensor_bytes(results[0]), (uint64_t)rnn->layers,
                   (uint64_t)rnn->directions, rnn->flat->bytes, matrix_bytes(rnn), rnn->batch_first,
                   rnn->packed},
    };
    gmd_shape flat = {1, {(int64_t)reserve_bytes(&recipe)}};
    bool tracked = gmd_tensor_tracked(engine, input) || gmd_tensor_tracked(engine, h) ||
                   gmd_tensor_tracked(engine, c) || gmd_tensor_tracked(engine, rnn->weights[0]);
    gmd_storage *workspace = gmd_storage_new(engine, workspace_bytes(&recipe));
    gmd_tensor *reserve = tracked ? gmd_tensor_new(engine, &flat, GMD_UINT8) : NULL;
    gmd_storage_drop(engine, workspace);
    if (tracked) {
        record(engine, rnn, inputs, results, reserve, &recipe);
    }
    results[0]->transposed = rnn->batch_first; /* a view of what cuDNN wrote, the length first */
    gmd_tensor_drop(engine, reserve);
    gmd_tensor_drop(engine, copy);
    return true;
}
