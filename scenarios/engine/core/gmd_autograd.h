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
void node_connect(struct engine *engine, struct node *node, uint32_t index, struct tensor *input);

/* Keeps the storage until backward has gone through. */
void node_save(struct node *node, struct tensor *tensor);

/* Makes `tensor` output `index` of `node`. */
void node_result(struct node *node, uint32_t index, struct tensor *tensor);

/* A node over one input, whose shape and type the recipe has, or NULL when nothing needs to be
 * recorded. */
struct node *node_over(struct engine *engine, const char *name, backward_fn backward,
                       struct tensor *input, struct tensor *result);
/* Records such a node, which keeps `saved` for its backward function, where one is needed. */
void node_over_saving(struct engine *engine, const char *name, backward_fn backward,
                      struct tensor *input, struct tensor *result, struct tensor *saved);

/* After an operation in place: `tensor` takes the node of `result`, the view of it that the
 * operation returned. */
void tensor_rebase(struct engine *engine, struct tensor *tensor, struct tensor *result);

/* From `tensor`, which has a graph, back to the leaves, beginning with its gradient `grad` (taken
 * over). May be called while another pass is under way, as checkpointing does. */
void tensor_backward_from(struct engine *engine, struct tensor *tensor, struct tensor *grad,
                          bool retain_graph);
/* From a scalar back to the leaves. */
void tensor_backward(struct engine *engine, struct tensor *loss, bool retain_graph);

#endif
