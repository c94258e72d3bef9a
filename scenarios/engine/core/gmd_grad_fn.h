/* gmd_grad_fn.h - a tensor's grad_fn as a script holds it: a node of the graph without the tensor.
 */
#ifndef GMD_GRAD_FN_H
#define GMD_GRAD_FN_H

#include "gmd_autograd.h"

struct grad_fn;
extern const struct thing_class grad_fn_class;

/* Returns NULL where the tensor is a leaf or outside any graph. A grad_fn keeps its node, and so
 * everything that was saved on the way to it; it keeps the tensor's own memory only where the node
 * saved that. */
struct grad_fn *grad_fn_of(struct engine *engine, const struct tensor *tensor);

struct node *grad_fn_node(const struct grad_fn *grad_fn); /* borrowed */
const char *grad_fn_name(const struct grad_fn *grad_fn);  /* "AddmmBackward" */

#endif
