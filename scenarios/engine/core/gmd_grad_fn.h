/* gmd_grad_fn.h - a tensor's grad_fn as a script holds it: a node of the graph without the tensor.
 */
#ifndef GMD_GRAD_FN_H
#define GMD_GRAD_FN_H

#include "gmd_autograd.h"

typedef struct gmd_grad_fn gmd_grad_fn;
extern const gmd_thing_class gmd_grad_fn_class;

/* NULL: the tensor is a leaf, or outside any graph. It keeps the node, and so all that was saved on
 * the way to it; the tensor's own memory only where the node saved that. */
gmd_grad_fn *gmd_grad_fn_of(gmd_engine *engine, const gmd_tensor *tensor);

gmd_node *gmd_grad_fn_node(const gmd_grad_fn *grad_fn);   /* borrowed */
const char *gmd_grad_fn_name(const gmd_grad_fn *grad_fn); /* "AddmmBackward" */

#endif
