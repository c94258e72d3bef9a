/* layer_node.h - what layers with weights have in common: a node with the edges input, weight and
 * bias, and windows that move over an image. */
#ifndef LAYER_NODE_H
#define LAYER_NODE_H

#include "gmd_operations.h"

/* recipe.shape is the input's and the weight's. NULL: nothing needs to be recorded. `weight` and
 * `bias` may be NULL. */
struct node *layer_node(struct engine *engine, const char *name, backward_fn backward,
                        struct tensor *input, struct tensor *weight, struct tensor *bias);

/* The last of what is recorded: the node keeps these for its way back, in this order, and gives the
 * result. `node` is taken over; NULL: nothing is recorded. */
void layer_node_keep(struct engine *engine, struct node *node, struct tensor *const kept[],
                     size_t count, struct tensor *result);

/* Weights are of the input's type; false after engine_misuse(). */
bool same_types(struct engine *engine, const char *what, const struct tensor *input,
                const struct tensor *weight);

/* A new tensor of the input's shape and type. */
struct tensor *grad_of_input(struct engine *engine, const struct node *node);

/* The shape of an image after a window has moved over it; false after engine_misuse(). */
bool windowed_shape(struct engine *engine, const char *what, const struct tensor *input,
                    struct conv conv, struct shape *shape);

#endif
