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
/* Is called when the pass that is under way is over: the outermost one, as autograd's
 * queue_callback(). */
void backward_then(struct engine *engine, void (*call)(struct engine *engine, void *context),
                   void *context);
/* torch.autograd.grad(): from `tensor`, which has a graph, with its gradient `grad` (taken over),
 * to the gradients by `inputs`: new references. Nothing else gets a gradient. `create_graph`: what
 * is computed is recorded. engine_misuse() where an input is not in the graph, or the derivative of
 * a derivative is not known. */
struct gradient_request {
    struct tensor **inputs;
    size_t count;
    bool retain_graph, create_graph;
};
void tensor_gradients(struct engine *engine, struct tensor *tensor, struct tensor *grad,
                      const struct gradient_request *request, struct tensor **results);

/* What an operation read as input number `index`, which it saved as number `saved`: with its graph,
 * for derivatives that are recorded. A new reference. */
struct tensor *node_input(struct engine *engine, const struct node *node, uint32_t index,
                          uint32_t saved);

/* From a scalar back to the leaves. */
void tensor_backward(struct engine *engine, struct tensor *loss, bool retain_graph);

#endif
