/* gmd_autograd.h - the graph that operations record and that backward() walks.
 *
 * A node stands for one operation. It keeps the storages that its derivative needs, and its inputs'
 * nodes; a tensor keeps the node that made it. So a graph, and all that it saved, lives as long as
 * anybody keeps a tensor that came out of it. Facts: torch/csrc/autograd/engine.cpp,
 * accumulate_grad.h and input_buffer.cpp of PyTorch 2.11. */
#ifndef GMD_AUTOGRAD_H
#define GMD_AUTOGRAD_H

#include "gmd_node.h"
#include "gmd_tensor.h"

/* Edge `index` leads to where `input` came from; nothing where it needs no gradient. */
void gmd_node_connect(gmd_engine *engine, gmd_node *node, uint32_t index, gmd_tensor *input);

/* Makes `tensor` output `index` of `node`. */
void gmd_node_result(gmd_node *node, uint32_t index, gmd_tensor *tensor);

/* A node over one input, whose shape and type the recipe has, or NULL when nothing needs to be
 * recorded. */
gmd_node *gmd_node_over(gmd_engine *engine, const char *name, gmd_backward backward,
                        gmd_tensor *input, gmd_tensor *result);

/* In place: `tensor` is now what `result`, a view of it that an operation gave, is in the graph. */
void gmd_tensor_rebase(gmd_engine *engine, gmd_tensor *tensor, gmd_tensor *result);

/* From `tensor`, which has a graph, back to the leaves, beginning with its gradient `grad` (taken
 * over). May be called while another pass is under way, as checkpointing does. */
void gmd_backward_from(gmd_engine *engine, gmd_tensor *tensor, gmd_tensor *grad, bool retain_graph);
/* From a scalar back to the leaves. */
void gmd_tensor_backward(gmd_engine *engine, gmd_tensor *loss, bool retain_graph);

#endif
