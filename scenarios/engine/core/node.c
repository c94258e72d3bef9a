#include "gmd_node.h"

#include "gmd_tensor.h"

gmd_node *gmd_node_new(gmd_engine *engine, const char *name, gmd_backward backward,
                       uint32_t edge_count)
{
    gmd_node *node = gmd_take(engine, sizeof *node + edge_count * sizeof node->edges[0]);
    node->refs = 1;
    node->name = name;
    node->backward = backward;
    node->edge_count = edge_count;
    node->stream = engine->stream;
    node->output_count = GMD_FEW_OUTPUTS;
    node->buffer = node->few_outputs;
    node->sequence = backward ? engine->sequence++ : UINT64_MAX; /* accumulate without delay */
    return node;
}

void gmd_node_outputs(gmd_engine *engine, gmd_node *node, uint32_t count)
{
    if (count > GMD_FEW_OUTPUTS) {
        node->output_count = count;
        node->buffer = gmd_take(engine, count * sizeof(gmd_tensor *));
    }
}

void gmd_node_free_saved(gmd_engine *engine, gmd_node *node)
{
    for (uint32_t i = 0; i < node->saved_count; i++) {
        gmd_storage_drop(engine, node->saved[i]);
        node->saved[i] = NULL;
    }
    gmd_tensor_drop(engine, node->kept);
    node->kept = NULL;
}

static void take_apart(gmd_engine *engine, gmd_node *node)
{
    gmd_node_free_saved(engine, node);
    gmd_thing_drop(engine, node->owner);
    if (node->variable) {
        node->variable->accumulator = NULL;
        gmd_tensor_drop(engine, node->variable);
    }
    for (uint32_t i = 0; i < node->edge_count; i++) {
        gmd_node_drop(engine, node->edges[i].node);
    }
    if (node->buffer != node->few_outputs) {
        gmd_give(engine, node->buffer);
    }
    gmd_give(engine, node->sizes);
    gmd_give(engine, node);
}

/* A chain of a million nodes must not recurse a million deep, so the dying queue up. */
void gmd_node_drop(gmd_engine *engine, gmd_node *node)
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
        gmd_node *first = engine->dying;
        engine->dying = first->next;
        take_apart(engine, first);
    }
    engine->reaping = false;
}

void gmd_node_save(gmd_node *node, gmd_tensor *tensor)
{
    if (tensor && node->saved_count < GMD_MAX_SAVED) {
        node->saved[node->saved_count++] = gmd_storage_keep(tensor->storage);
        gmd_storage_is(tensor->storage, GMD_ACTIVATION);
    }
}
