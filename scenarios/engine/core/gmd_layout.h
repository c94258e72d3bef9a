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

/* --- new tensors ------------------------------------------------------------------------- */

#define LAYOUT_MAX_OPERANDS 3

/* A new tensor that lies as its operands do, which are of this shape or broadcast to it; without
 * gaps. Facts: TensorIterator.cpp of PyTorch 2.11. */
struct tensor *tensor_elementwise(struct engine *engine, const struct shape *shape,
                                  enum dtype dtype, struct tensor *const *operands, int count);
struct tensor *tensor_like_it_lies(struct engine *engine, struct tensor *model);

enum memory_format {
    FORMAT_ROWS,
    FORMAT_CHANNELS_LAST, /* of images */
    FORMAT_ANY,           /* as it lies */
};

/* The format in which kernels take the tensor. */
enum memory_format tensor_format(const struct tensor *tensor);
bool tensor_lies_as(const struct tensor *tensor, enum memory_format format);
struct tensor *tensor_new_as(struct engine *engine, const struct shape *shape, enum dtype dtype,
                             enum memory_format format);
/* A new reference to the tensor, or to a copy where it does not lie so; a kernel's own, outside the
 * graph. */
struct tensor *tensor_expect(struct engine *engine, struct tensor *tensor,
                             enum memory_format format);

#endif
