#include "gmd_node.h"

struct node *node_new(struct engine *engine, const char *name, backward_fn backward,
                      uint32_t edge_count)
{
    struct node *node = host_take(engine, sizeof *node + edge_count * sizeof node->edges[0]);
    node->refs = 1;
    node->name = name;
    node->backward = backward;
    node->edge_count = edge_count;
    node->stream = engine->stream;
    node->is_recomputed = engine->recomputes;
    node->output_count = NODE_FEW_OUTPUTS;
    node->buffer = node->few_outputs;
    /* each thread counts for itself; gradients are accumulated without delay */
    uint64_t *sequence = engine->in_backward ? &engine->backward_sequence : &engine->sequence;
    node->sequence = backward ? (*sequence)++ : UINT64_MAX;
    return node;
}

void node_outputs(struct engine *engine, struct node *node, uint32_t count)
{
    if (count > NODE_FEW_OUTPUTS) {
        node->output_count = count;
        node->buffer = host_take(engine, count * sizeof(struct tensor *));
    }
}

void node_free_saved(struct engine *engine, struct node *node)
{
    for (uint32_t i = 0; i < node->saved_count; i++) {
        storage_drop(engine, node->saved[i]);
        node->saved[i] = NULL;
    }
    thing_drop(engine, node->kept);
    node->kept = NULL;
}

void node_done_with_saved(struct engine *engine, struct node *node)
{
    for (uint32_t i = 0; node->is_recomputed && i < node->saved_count; i++) {
        storage_drop(engine, node->saved[i]);
        node->saved[i] = NULL;
    }
}

static void take_apart(struct engine *engine, struct node *node)
{
    node_free_saved(engine, node);
    thing_drop(engine, node->owner);
    if (node->variable) {
        *node->registered = NULL;
        thing_drop(engine, (struct thing *)node->variable);
    }
    for (uint32_t i = 0; i < node->edge_count; i++) {
        node_drop(engine, node->edges[i].node);
    }
    if (node->buffer != node->few_outputs) {
        host_give(engine, node->buffer);
    }
    host_give(engine, node->sizes);
    host_give(engine, node);
}

/* A chain of a million nodes must not recurse a million deep, so nodes to be destroyed are queued.
 */
void node_drop(struct engine *engine, struct node *node)
{
    if (!node || --node->refs > 0) {
        return;
    }
    node->next = engine->dying;
    engine->dying = node;
    if (engine->reaping) {
        return;
    }
    engine->reaping = true;
    while (engine->dying) {
        struct node *first = engine->dying;
        engine->dying = first->next;
        take_apart(engine, first);
    }
    engine->reaping = false;
}
