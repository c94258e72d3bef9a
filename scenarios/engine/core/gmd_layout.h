/* gmd_layout.h - how tensors lie in their storages. */
#ifndef GMD_LAYOUT_H
#define GMD_LAYOUT_H

#include "gmd_tensor.h"

/* How it lies. False: in a way that is not known; the strides are those of rows then. */
bool tensor_layout(const struct tensor *tensor, int64_t stride[SHAPE_MAX_DIMS]);
/* A view that lies so; whether it has gaps follows. */
struct tensor *tensor_laid(struct engine *engine, struct tensor *tensor, const struct shape *shape,
                           const int64_t stride[SHAPE_MAX_DIMS]);
/* Says of a new tensor that its second dimension lies outside its first. */
void tensor_lay_swapped(struct tensor *tensor);
/* A view with this order of its dimensions: dimension i was order[i]. */
struct tensor *tensor_permuted(struct engine *engine, struct tensor *tensor,
                               const int order[SHAPE_MAX_DIMS]);
/* Finds the strides with which the elements can be seen in another shape; false: they must be
 * copied for it. */
bool tensor_viewable(const struct tensor *tensor, const struct shape *shape,
                     int64_t stride[SHAPE_MAX_DIMS]);

#endif
