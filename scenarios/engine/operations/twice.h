/* twice.h - derivatives of activations that are recorded, so that they have a derivative
 * themselves: backward_fn for node.recorded. Facts: derivatives.yaml of PyTorch 2.11. */
#ifndef TWICE_H
#define TWICE_H

#include "gmd_autograd.h"

/* threshold_backward(grad, result), leaky_relu_backward(grad, input), tanh_backward(grad, result)
 */
void relu_recorded(struct engine *engine, struct node *node, struct tensor **grads,
                   struct tensor **results);
void leaky_relu_recorded(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results);
void tanh_recorded(struct engine *engine, struct node *node, struct tensor **grads,
                   struct tensor **results);

#endif
