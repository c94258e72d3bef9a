/* cell.c - a GRU's single step: two products and one fused kernel. */
#include "gmd_operations.h"

enum { INPUT_GATES, HIDDEN_GATES, STATE, INPUT_BIAS, HIDDEN_BIAS, EDGES };
/* recipe.shape: */
enum { GATES, HIDDEN, BIAS };

static gmd_tensor *shaped(gmd_engine *engine, const gmd_node *node, int index)
{
    return gmd_tensor_new(engine, &node->recipe.shape[index], node->recipe.dtype);
}

static void gru_cell_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                              gmd_tensor **results)
{
    static const int shapes[EDGES] = {GATES, GATES, HIDDEN, BIAS, BIAS};
    (void)grads;
    for (uint32_t i = 0; i < EDGES; i++) {
        results[i] = shaped(engine, node, shapes[i]); /* one kernel computes them all */
    }
    for (uint32_t i = 0; i < EDGES; i++) {
        if (!gmd_node_wants(node, i)) {
            gmd_tensor_drop(engine, results[i]);
            results[i] = NULL;
        }
    }
}

static gmd_tensor *fused(gmd_engine *engine, gmd_tensor *const inputs[EDGES])
{
    gmd_shape state = inputs[STATE]->shape, space = state;
    space.size[1] *= 5; /* three gates, and what the state and its own gate were */
    gmd_tensor *workspace = gmd_tensor_new(engine, &space, inputs[STATE]->dtype);
    gmd_tensor *result = gmd_tensor_new(engine, &state, inputs[STATE]->dtype);
    bool tracked = false;
    for (uint32_t i = 0; i < EDGES; i++) {
        tracked |= gmd_tensor_tracked(engine, inputs[i]);
    }
    if (tracked) {
        gmd_node *node = gmd_node_new(engine, "ThnnFusedGruCellBackward", gru_cell_backward, EDGES);
        for (uint32_t i = 0; i < EDGES; i++) {
            gmd_node_connect(engine, node, i, inputs[i]);
        }
        node->recipe.shape[GATES] = inputs[INPUT_GATES]->shape;
        node->recipe.shape[HIDDEN] = state;
        node->recipe.shape[BIAS] = inputs[INPUT_BIAS]->shape;
        node->recipe.dtype = inputs[STATE]->dtype;
        gmd_node_save(node, inputs[HIDDEN_GATES]);
        gmd_node_save(node, inputs[INPUT_GATES]);
        gmd_node_save(node, workspace);
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
    gmd_tensor_drop(engine, workspace);
    return result;
}

gmd_tensor *gmd_op_gru_cell(gmd_engine *engine, gmd_tensor *const weights[4], gmd_tensor *input,
                            gmd_tensor *state)
{
    gmd_tensor *input_gates = gmd_op_product(engine, input, weights[0]);
    gmd_tensor *hidden_gates = input_gates ? gmd_op_product(engine, state, weights[1]) : NULL;
    gmd_tensor *result = NULL;
    if (hidden_gates) {
        gmd_tensor *const inputs[EDGES] = {input_gates, hidden_gates, state, weights[2],
                                           weights[3]};
        result = fused(engine, inputs);
    }
    gmd_tensor_drop(engine, input_gates);
    gmd_tensor_drop(engine, hidden_gates);
    return result;
}
