/* ops_rnn.c - the LSTM as cuDNN runs it: one call for all layers and steps, a reserve space that
 * lives as long as the graph, and a workspace for the call. */
#include "ops.h"

enum { EDGE_INPUT, EDGE_H, EDGE_C, EDGE_WEIGHTS };
enum { STEP_BYTES, LAYERS, WEIGHT_BYTES }; /* of recipe.number */

/* For each element of an output of one layer: four gates and a cell state of each layer, and the
 * outputs between layers. */
static uint64_t reserve_bytes(uint64_t step_bytes, uint64_t layers)
{
    return step_bytes * (6 * layers - 1) + 256;
}

static uint64_t workspace_bytes(const gmd_node *node)
{
    return node->recipe.number[STEP_BYTES] * 9 * node->recipe.number[LAYERS] + 512;
}

static gmd_tensor *shaped(gmd_engine *engine, const gmd_node *node, int index)
{
    return gmd_tensor_new(engine, &node->recipe.shape[index], node->recipe.dtype);
}

/* First the gradients of the data, then, from a second call, those of all weights in one buffer,
 * of which each weight's gradient is a view. */
static void lstm_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                          gmd_tensor **results)
{
    gmd_tensor *zero_h = grads[1] ? NULL : shaped(engine, node, 1);
    gmd_tensor *zero_c = grads[2] ? NULL : shaped(engine, node, 1);
    gmd_tensor *input = shaped(engine, node, 0);
    gmd_tensor *grad = shaped(engine, node, 2);
    gmd_tensor *dx = shaped(engine, node, 0);
    gmd_tensor *dh = shaped(engine, node, 1);
    gmd_tensor *dc = shaped(engine, node, 1);
    gmd_scratch(engine, workspace_bytes(node));
    gmd_tensor_drop(engine, grad);
    gmd_tensor_drop(engine, input);
    if (gmd_node_wants(node, EDGE_WEIGHTS)) {
        input = shaped(engine, node, 0);
        gmd_shape all = {1, {(int64_t)(node->recipe.number[WEIGHT_BYTES] / 4)}};
        gmd_tensor *flat = gmd_tensor_new(engine, &all, GMD_FLOAT32);
        gmd_scratch(engine, workspace_bytes(node));
        for (uint32_t i = EDGE_WEIGHTS; i < node->edge_count; i++) {
            results[i] = gmd_tensor_view(engine, flat, &all);
        }
        gmd_tensor_drop(engine, flat);
        gmd_tensor_drop(engine, input);
    }
    gmd_tensor_drop(engine, zero_c);
    gmd_tensor_drop(engine, zero_h);
    gmd_tensor *data[3] = {dx, dh, dc};
    for (uint32_t i = 0; i < 3; i++) {
        if (gmd_node_wants(node, i)) {
            results[i] = data[i];
        } else {
            gmd_tensor_drop(engine, data[i]);
        }
    }
}

static void record(gmd_engine *engine, const gmd_lstm *lstm, gmd_tensor *const inputs[3],
                   gmd_tensor *results[3], gmd_tensor *reserve)
{
    gmd_node *node = gmd_node_new(engine, "CudnnRnnBackward", lstm_backward,
                                  EDGE_WEIGHTS + 4 * (uint32_t)lstm->layers);
    for (uint32_t i = 0; i < 3; i++) {
        gmd_node_connect(engine, node, i, inputs[i]);
    }
    for (uint32_t i = 0; i < 4 * (uint32_t)lstm->layers; i++) {
        gmd_node_connect(engine, node, EDGE_WEIGHTS + i, lstm->weights[i]);
    }
    node->recipe = (gmd_recipe){
        .shape = {inputs[0]->shape, inputs[1]->shape, results[0]->shape},
        .dtype = inputs[0]->dtype,
        .number = {gmd_tensor_bytes(results[0]), (uint64_t)lstm->layers, lstm->flat->bytes},
    };
    gmd_node_save(node, inputs[EDGE_C]);
    gmd_node_save(node, inputs[EDGE_H]);
    gmd_node_save(node, inputs[EDGE_INPUT]);
    gmd_node_save(node, results[0]);
    gmd_node_save(node, reserve);
    for (uint32_t i = 0; i < 3; i++) {
        gmd_node_result(node, i, results[i]);
    }
    gmd_node_drop(engine, node);
}

static bool fits(gmd_engine *engine, const gmd_lstm *lstm, const gmd_tensor *input,
                 const gmd_tensor *h, const gmd_tensor *c)
{
    char text[128];
    int64_t features = lstm->weights[0]->shape.size[1];
    if (input->shape.dims != 3 || input->shape.size[2] != features) {
        gmd_misuse(engine, "LSTM takes [batch, length, %lld], the input is %s", (long long)features,
                   gmd_shape_text(&input->shape, text));
        return false;
    }
    gmd_shape shape = {3, {lstm->layers, input->shape.size[0], lstm->hidden}};
    uint64_t state = gmd_shape_count(&shape);
    if (gmd_shape_count(&h->shape) != state || gmd_shape_count(&c->shape) != state) {
        gmd_misuse(engine, "LSTM takes states of [%lld, %lld, %lld], h is %s",
                   (long long)lstm->layers, (long long)input->shape.size[0],
                   (long long)lstm->hidden, gmd_shape_text(&h->shape, text));
        return false;
    }
    return true;
}

bool gmd_op_lstm(gmd_engine *engine, const gmd_lstm *lstm, gmd_tensor *input, gmd_tensor *h,
                 gmd_tensor *c, gmd_tensor *results[3])
{
    if (!input || !h || !c || !fits(engine, lstm, input, h, c)) {
        return false;
    }
    gmd_tensor *const inputs[3] = {input, h, c};
    gmd_shape shape = {3, {input->shape.size[0], input->shape.size[1], lstm->hidden}};
    gmd_tensor *by_step = gmd_tensor_like(engine, input); /* cuDNN wants the length first */
    results[0] = gmd_tensor_new(engine, &shape, input->dtype);
    results[1] = gmd_tensor_like(engine, h);
    results[2] = gmd_tensor_like(engine, c);
    uint64_t step_bytes = gmd_tensor_bytes(results[0]), layers = (uint64_t)lstm->layers;
    gmd_shape flat = {1, {(int64_t)reserve_bytes(step_bytes, layers)}};
    bool tracked = gmd_tensor_tracked(engine, input) || gmd_tensor_tracked(engine, h) ||
                   gmd_tensor_tracked(engine, lstm->weights[0]);
    gmd_storage *workspace = gmd_storage_new(engine, step_bytes * 9 * layers + 512);
    gmd_tensor *reserve = tracked ? gmd_tensor_new(engine, &flat, GMD_UINT8) : NULL;
    gmd_storage_drop(engine, workspace);
    if (tracked) {
        record(engine, lstm, inputs, results, reserve);
    }
    gmd_tensor_drop(engine, reserve);
    gmd_tensor_drop(engine, by_step);
    return true;
}
