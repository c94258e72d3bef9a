/* cell.c - a GRU's single step: two products and one fused kernel. */
#include "gmd_autocast.h"

enum { INPUT_GATES, HIDDEN_GATES, STATE, INPUT_BIAS, HIDDEN_BIAS, EDGES };
/* recipe.shape: */
enum { GATES, HIDDEN, BIAS };

static struct tensor *shaped(struct engine *engine, const struct node *node, int index)
{
    return tensor_new(engine, &node->recipe.shape[index], node->recipe.dtype);
}

static void gru_cell_backward(struct engine *engine, struct node *node, struct tensor **grads,
                              struct tensor **results)
{
    static const int shapes[EDGES] = {GATES, GATES, HIDDEN, BIAS, BIAS};
    (void)grads;
    for (uint32_t i = 0; i < EDGES; i++) {
        results[i] = shaped(engine, node, shapes[i]); /* one kernel computes them all */
    }
    for (uint32_t i = 0; i < EDGES; i++) {
        if (!node_wants(node, i)) {
            tensor_drop(engine, results[i]);
            results[i] = NULL;
        }
    }
}

static struct tensor *fused(struct engine *engine, struct tensor *const inputs[EDGES])
{
    struct shape state = inputs[STATE]->shape, space = state;
    space.size[1] *= 5; /* three gates, and what the state and its own gate were */
    struct tensor *workspace = tensor_new(engine, &space, inputs[STATE]->dtype);
    struct tensor *result = tensor_new(engine, &state, inputs[STATE]->dtype);
    bool tracked = false;
    for (uint32_t i = 0; i < EDGES; i++) {
        tracked |= tensor_tracked(engine, inputs[i]);
    }
    if (tracked) {
        struct node *node = node_new(engine, "ThnnFusedGruCellBackward", gru_cell_backward, EDGES);
        for (uint32_t i = 0; i < EDGES; i++) {
            node_connect(engine, node, i, inputs[i]);
        }
        node->recipe.shape[GATES] = inputs[INPUT_GATES]->shape;
        node->recipe.shape[HIDDEN] = state;
        node->recipe.shape[BIAS] = inputs[INPUT_BIAS]->shape;
        node->recipe.dtype = inputs[STATE]->dtype;
        node_save(node, inputs[HIDDEN_GATES]);
        node_save(node, inputs[INPUT_GATES]);
        node_save(node, workspace);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    tensor_drop(engine, workspace);
    return result;
}

static struct tensor *gru_cell(struct engine *engine, struct tensor *const weights[4],
                               struct tensor *input, struct tensor *state)
{
    struct tensor *input_gates = op_product(engine, input, weights[0]);
    struct tensor *hidden_gates = input_gates ? op_product(engine, state, weights[1]) : NULL;
    struct tensor *result = NULL;
    if (hidden_gates) {
        struct tensor *const inputs[EDGES] = {input_gates, hidden_gates, state, weights[2],
                                              weights[3]};
        result = fused(engine, inputs);
    }
    tensor_drop(engine, input_gates);
    tensor_drop(engine, hidden_gates);
    return result;
}

struct tensor *op_gru_cell(struct engine *engine, struct tensor *const weights[4],
                           struct tensor *input, struct tensor *state)
{
    struct tensor *w[4];
    for (int i = 3; i >= 0; i--) {
        w[i] = autocast_argument(engine, "gru_cell", weights[i]);
    }
    struct tensor *h = autocast_argument(engine, "gru_cell", state);
    struct tensor *x = autocast_argument(engine, "gru_cell", input);
    struct tensor *result = gru_cell(engine, w, x, h);
    tensor_drop(engine, x);
    tensor_drop(engine, h);
    for (int i = 0; i < 4; i++) {
        tensor_drop(engine, w[i]);
    }
    return result;
}
