#include "gmd_layout.h"

/* Strides of dimensions of size 1 do not matter. */
static bool lies_by_rows(const struct shape *shape, const int64_t stride[SHAPE_MAX_DIMS])
{
    int64_t rows[SHAPE_MAX_DIMS];
    shape_strides(shape, rows);
    for (int i = 0; i < shape->dims; i++) {
        if (shape->size[i] != 1 && stride[i] != rows[i]) {
            return shape_count(shape) == 0;
        }
    }
    return true;
}

bool tensor_layout(const struct tensor *tensor, int64_t stride[SHAPE_MAX_DIMS])
{
    shape_strides(&tensor->shape, stride);
    if (!tensor->transposed) {
        return true;
    }
    bool is_known = !lies_by_rows(&tensor->shape, tensor->stride);
    for (int i = 0; is_known && i < tensor->shape.dims; i++) {
        stride[i] = tensor->stride[i];
    }
    return is_known;
}

struct tensor *tensor_laid(struct engine *engine, struct tensor *tensor, const struct shape *shape,
                           const int64_t stride[SHAPE_MAX_DIMS])
{
    int64_t known[SHAPE_MAX_DIMS];
    bool is_known = tensor_layout(tensor, known);
    struct tensor *view = tensor_view(engine, tensor, shape);
    view->transposed = !is_known || !lies_by_rows(shape, stride);
    for (int i = 0; i < shape->dims; i++) {
        view->stride[i] = stride[i];
    }
    return view;
}

void tensor_lay_swapped(struct tensor *tensor)
{
    struct shape swapped = tensor->shape;
    swapped.size[0] = tensor->shape.size[1];
    swapped.size[1] = tensor->shape.size[0];
    shape_strides(&swapped, tensor->stride);
    int64_t first = tensor->stride[0];
    tensor->stride[0] = tensor->stride[1];
    tensor->stride[1] = first;
    tensor->transposed = true;
}

struct tensor *tensor_permuted(struct engine *engine, struct tensor *tensor,
                               const int order[SHAPE_MAX_DIMS])
{
    int64_t stride[SHAPE_MAX_DIMS], permuted[SHAPE_MAX_DIMS];
    struct shape shape = tensor->shape;
    tensor_layout(tensor, stride);
    for (int i = 0; i < shape.dims; i++) {
        shape.size[i] = tensor->shape.size[order[i]];
        permuted[i] = stride[order[i]];
    }
    return tensor_laid(engine, tensor, &shape, permuted);
}

/* The run of dimensions that ends with `last` and lies as one: gives its first. */
static int run_before(const struct shape *shape, const int64_t stride[SHAPE_MAX_DIMS], int last)
{
    int first = last;
    while (first > 0 && stride[first - 1] == shape_product(shape->size[first], stride[first])) {
        first--;
    }
    return first;
}

/* Dimensions of size 1 out of the way. */
static void without_ones(const struct tensor *tensor, struct shape *shape,
                         int64_t stride[SHAPE_MAX_DIMS])
{
    int64_t all[SHAPE_MAX_DIMS];
    tensor_layout(tensor, all);
    shape->dims = 0;
    for (int i = 0; i < tensor->shape.dims; i++) {
        if (tensor->shape.size[i] != 1) {
            stride[shape->dims] = all[i];
            shape->size[shape->dims++] = tensor->shape.size[i];
        }
    }
}

bool tensor_viewable(const struct tensor *tensor, const struct shape *shape,
                     int64_t stride[SHAPE_MAX_DIMS])
{
    struct shape from;
    int64_t at[SHAPE_MAX_DIMS];
    shape_strides(shape, stride);
    if (!tensor->transposed || shape_count(shape) <= 1) {
        return true;
    }
    if (!tensor_layout(tensor, at)) {
        return false;
    }
    without_ones(tensor, &from, at);
    int i = shape->dims - 1;
    for (int last = from.dims - 1; last >= 0;) {
        int first = run_before(&from, at, last);
        int64_t elements = 1, filled = 1;
        for (int k = first; k <= last; k++) {
            elements = shape_product(elements, from.size[k]);
        }
        for (; i >= 0 && (filled < elements || shape->size[i] == 1); i--) {
            stride[i] = shape_product(filled, at[last]);
            filled = shape_product(filled, shape->size[i]);
        }
        if (filled != elements) {
            return false;
        }
        last = first - 1;
    }
    return true;
}
