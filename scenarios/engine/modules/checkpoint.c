#include "gmd_checkpoint.h"

#include "gmd_autocast.h"
#include "gmd_sharded.h"

/* The forward pass once more, now recorded, and back through it. The gradient is handed over, so
 * that it is freed where the inner pass is done with it. */
static void recompute(struct engine *engine, struct node *node, struct tensor **grads,
                      struct tensor **results)
{
    struct module *module = (struct module *)node->owner;
    bool casts = node->recipe.number[0] != 0, recomputes = engine->recomputes;
    struct tensor *input = tensor_alias(engine, (struct tensor *)node->kept);
    input->requires_grad = true;
    engine->grad_enabled = true;
    if (casts) {
        autocast_begin(engine, (enum dtype)node->recipe.number[1]);
    }
    engine->recomputes = true;
    struct tensor *output = module_apply(engine, module, input);
    engine->recomputes = recomputes;
    if (casts) {
        autocast_end(engine);
    }
    engine->grad_enabled = false;
    if (output && output->grad_fn) {
        struct tensor *grad = grads[0];
        grads[0] = NULL;
        struct node *graph = output->grad_fn;
        graph->refs++;
        struct tensor shape_only = {.grad_fn = graph, .output = output->output};
        tensor_drop(engine, output);
        tensor_backward_from(engine, &shape_only, grad, false);
        node_drop(engine, graph);
    } else {
        tensor_drop(engine, output);
    }
    if (node_wants(node, 0)) {
        results[0] = tensor_keep(input->grad);
    }
    tensor_drop(engine, input);
}

typedef struct finder {
    struct tensor *found;
} finder;

static void find_trainable(struct engine *engine, struct tensor *parameter, void *context)
{
    finder *search = context;
    (void)engine;
    if (parameter->requires_grad) {
        search->found = parameter;
    }
}

struct tensor *checkpoint_apply(struct engine *engine, struct module *module, struct tensor *input)
{
    finder search = {NULL};
    if (sharded_within(engine, module)) {
        engine_misuse(engine, "a sharded module cannot be checkpointed: fully_shard() what "
                              "checkpoints it, nn.Checkpointed { module }");
        return NULL;
    }
    module_parameters(engine, module, find_trainable, &search);
    bool tracked = tensor_tracked(engine, input) || tensor_tracked(engine, search.found);
    bool grad_enabled = engine->grad_enabled;
    engine->grad_enabled = false;
    struct tensor *output = module_apply(engine, module, input);
    engine->grad_enabled = grad_enabled;
    if (output && tracked) {
        struct node *node = node_new(engine, "CheckpointBackward", recompute, 1);
        node_connect(engine, node, 0, input);
        node->kept = tensor_thing(tensor_alias(engine, input));
        node->owner = thing_keep(&module->thing);
        node->recipe.number[0] = engine->autocast != NULL;
        node->recipe.number[1] = (uint64_t)autocast_dtype(engine, DTYPE_FLOAT32);
        node_result(node, 0, output);
        node_drop(engine, node);
    }
    return output;
}

static int checkpointed_forward(struct engine *engine, struct module *module,
                                struct tensor **inputs, int count,
                                struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    results[0] = checkpoint_apply(engine, module->children[0], inputs[0]);
    return results[0] ? 1 : 0;
}

struct module *nn_checkpointed(struct engine *engine, struct module *body)
{
    struct module *module = module_new(engine, "Checkpointed", checkpointed_forward);
    module_child(engine, module, body);
    return module;
}
