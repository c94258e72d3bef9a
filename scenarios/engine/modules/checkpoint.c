#include "gmd_checkpoint.h"

#include "gmd_autocast.h"

/* The forward pass once more, now recorded, and back through it. The gradient is handed over, so
 * that it is freed where the inner pass is done with it. */
static void recompute(gmd_engine *engine, gmd_node *node, gmd_tensor **grads, gmd_tensor **results)
{
    gmd_module *module = (gmd_module *)node->owner;
    bool casts = node->recipe.number[0] != 0;
    gmd_tensor *input = gmd_tensor_alias(engine, node->kept);
    input->requires_grad = true;
    engine->grad_enabled = true;
    if (casts) {
        gmd_autocast_begin(engine, (gmd_dtype)node->recipe.number[1]);
    }
    gmd_tensor *output = gmd_module_apply(engine, module, input);
    if (casts) {
        gmd_autocast_end(engine);
    }
    engine->grad_enabled = false;
    if (output && output->grad_fn) {
        gmd_tensor *grad = grads[0];
        grads[0] = NULL;
        gmd_node *graph = output->grad_fn;
        graph->refs++;
        gmd_tensor shape_only = {.grad_fn = graph, .output = output->output};
        gmd_tensor_drop(engine, output);
        gmd_backward_from(engine, &shape_only, grad, false);
        gmd_node_drop(engine, graph);
    } else {
        gmd_tensor_drop(engine, output);
    }
    if (gmd_node_wants(node, 0)) {
        results[0] = gmd_tensor_keep(input->grad);
    }
    gmd_tensor_drop(engine, input);
}

typedef struct finder {
    gmd_tensor *found;
} finder;

static void find_trainable(gmd_engine *engine, gmd_tensor *parameter, void *context)
{
    finder *search = context;
    (void)engine;
    if (parameter->requires_grad) {
        search->found = parameter;
    }
}

gmd_tensor *gmd_checkpoint(gmd_engine *engine, gmd_module *module, gmd_tensor *input)
{
    finder search = {NULL};
    gmd_module_parameters(engine, module, find_trainable, &search);
    bool tracked = gmd_tensor_tracked(engine, input) || gmd_tensor_tracked(engine, search.found);
    bool grad_enabled = engine->grad_enabled;
    engine->grad_enabled = false;
    gmd_tensor *output = gmd_module_apply(engine, module, input);
    engine->grad_enabled = grad_enabled;
    if (output && tracked) {
        gmd_node *node = gmd_node_new(engine, "CheckpointBackward", recompute, 1);
        gmd_node_connect(engine, node, 0, input);
        node->kept = gmd_tensor_alias(engine, input);
        node->owner = gmd_thing_keep(&module->thing);
        node->recipe.number[0] = engine->autocast != NULL;
        node->recipe.number[1] = (uint64_t)gmd_autocast_dtype(engine, GMD_FLOAT32);
        gmd_node_result(node, 0, output);
        gmd_node_drop(engine, node);
    }
    return output;
}

static int checkpointed_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs,
                                int count, gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    results[0] = gmd_checkpoint(engine, module->children[0], inputs[0]);
    return results[0] ? 1 : 0;
}

gmd_module *gmd_nn_checkpointed(gmd_engine *engine, gmd_module *body)
{
    gmd_module *module = gmd_module_new(engine, "Checkpointed", checkpointed_forward);
    gmd_module_child(engine, module, body);
    return module;
}
