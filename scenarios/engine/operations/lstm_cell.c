/* lstm_cell.c - an LSTM's single step: two products and one fused kernel. Facts: RNN.cpp,
 * cuda/RNN.cu and derivatives.yaml of PyTorch 2.11. */
#include "gmd_autocast.h"
#include "gmd_more_operations.h"
#include "reduce.h"

enum { INPUT_GATES, HIDDEN_GATES, STATE, INPUT_BIAS, HIDDEN_BIAS, EDGES };
enum { GATES, HIDDEN, BIAS }; /* recipe.shape */

/* One gradient for the gates of both, and one sum of it for both biases. */
static void lstm_cell_backward(struct engine *engine, struct node *node, struct tensor **grads,
                               struct tensor **results)
{
    const struct recipe *recipe = &node->recipe;
    (void)grads;
    struct tensor *gates = tensor_new(engine, &recipe->shape[GATES], recipe->dtype);
    struct tensor *state = tensor_new(engine, &recipe->shape[HIDDEN], recipe->dtype);
    struct tensor *bias =
        reduce_to(engine, &recipe->shape[GATES], &recipe->shape[BIAS], recipe->dtype);
    struct tensor *const each[EDGES] = {gates, gates, state, bias, bias};
    for (uint32_t i = 0; i < EDGES; i++) {
        results[i] = node_wants(node, i) ? tensor_keep(each[i]) : NULL;
    }
    tensor_drop(engine, bias);
    tensor_drop(engine, state);
    tensor_drop(engine, gates);
}

static void fused(struct engine *engine, struct tensor *const inputs[EDGES],
                  struct tensor *results[2])
{
    struct tensor *workspace = tensor_like(engine, inputs[INPUT_GATES]);
    bool tracked = false;
    results[0] = tensor_like(engine, inputs[STATE]);
    results[1] = tensor_like(engine, inputs[STATE]);
    for (uint32_t i = 0; i < EDGES; i++) {
        tracked |= tensor_tracked(engine, inputs[i]);
    }
    if (tracked) {
        struct node *node =
            node_new(engine, "ThnnFusedLstmCellBackward", lstm_cell_backward, EDGES);
        for (uint32_t i = 0; i < EDGES; i++) {
            node_connect(engine, node, i, inputs[i]);
            node_save(node, inputs[i]);
        }
        node->recipe.shape[GATES] = inputs[INPUT_GATES]->shape;
        node->recipe.shape[HIDDEN] = inputs[STATE]->shape;
        node->recipe.shape[BIAS] = inputs[INPUT_BIAS]->shape;
        node->recipe.dtype = inputs[STATE]->dtype;
        node_save(node, results[1]);
        node_save(node, workspace);
        node_result(node, 0, results[0]);
        node_result(node, 1, results[1]);
        node_drop(engine, node);
    }
    tensor_drop(engine, workspace);
}

static bool is_state(struct engine *engine, const struct tensor *state, const struct tensor *input,
                     const struct tensor *weight)
{
    char text[128];
    struct shape shape = {2, {input->shape.size[0], weight->shape.size[1]}};
    if (shape_is(&state->shape, &shape)) {
        return true;
    }
    engine_misuse(engine, "LSTMCell takes states of [%lld, %lld], this one is %s",
                  (long long)shape.size[0], (long long)shape.size[1],
                  shape_text(&state->shape, text));
    return false;
}

bool op_lstm_cell(struct engine *engine, struct tensor *const weights[4], struct tensor *input,
                  struct tensor *h, struct tensor *c, struct tensor *results[2])
{
    struct tensor *as[7], *const given[7] = {input,      h,          c,         weights[0],
                                             weights[1], weights[2], weights[3]};
    if (!input || !h || !c || input->shape.dims != 2 || !is_state(engine, h, input, weights[1]) ||
        !is_state(engine, c, input, weights[1])) {
        if (input && input->shape.dims != 2) {
            engine_misuse(engine, "LSTMCell takes an input of [batch, features]");
        }
        return false;
    }
    for (int i = 6; i >= 0; i--) {
        as[i] = autocast_argument(engine, "lstm_cell", given[i]);
    }
    struct tensor *input_gates = op_product(engine, as[0], as[3]);
    struct tensor *hidden_gates = input_gates ? op_product(engine, as[1], as[4]) : NULL;
    if (hidden_gates) {
        struct tensor *const inputs[EDGES] = {input_gates, hidden_gates, as[2], as[5], as[6]};
        fused(engine, inputs, results);
    }
    bool done = hidden_gates != NULL;
    tensor_drop(engine, hidden_gates);
    tensor_drop(engine, input_gates);
    for (int i = 0; i < 7; i++) {
        tensor_drop(engine, as[i]);
    }
    return done;
}
