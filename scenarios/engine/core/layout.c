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
    tensor->transposed = !lies_by_rows(&tensor->shape, tensor->stride);
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

/* --- layouts of new tensors -------------------------------------------------------------- */

/* A dimension that a tensor is broadcast along has no step. */
static void aligned_strides(const struct tensor *tensor, const struct shape *shape,
                            int64_t stride[SHAPE_MAX_DIMS])
{
    int64_t own[SHAPE_MAX_DIMS];
    int lead = shape->dims - tensor->shape.dims;
    tensor_layout(tensor, own);
    for (int i = 0; i < shape->dims; i++) {
        bool is_broadcast = i < lead || tensor->shape.size[i - lead] != shape->size[i];
        stride[i] = is_broadcast ? 0 : own[i - lead];
    }
}

/* Whether dimension `b` lies inside `a`: 1; outside: -1; 0: nothing says so. The first tensor that
 * says it decides. */
static int lies_inside(const struct shape *shape, int64_t (*stride)[SHAPE_MAX_DIMS], int count,
                       int a, int b)
{
    for (int i = 0; i < count; i++) {
        if (stride[i][a] == 0 || stride[i][b] == 0) {
            continue;
        }
        if (stride[i][a] != stride[i][b]) {
            return stride[i][a] > stride[i][b] ? 1 : -1;
        }
        if (shape->size[a] > shape->size[b]) {
            return 1;
        }
    }
    return 0;
}

/* Sorts the dimensions from the innermost to the outermost, as TensorIterator does: what nothing is
 * said about stays where it is. */
static void sort_dimensions(const struct shape *shape, int64_t (*stride)[SHAPE_MAX_DIMS], int count,
                            int order[SHAPE_MAX_DIMS])
{
    for (int i = 0; i < shape->dims; i++) {
        order[i] = shape->dims - 1 - i;
    }
    for (int i = 1; i < shape->dims; i++) {
        int at = i;
        for (int k = i - 1; k >= 0; k--) {
            int inside = lies_inside(shape, stride, count, order[k], order[at]);
            if (inside < 0) {
                break;
            }
            if (inside > 0) {
                int other = order[k];
                order[k] = order[at];
                order[at] = other;
                at = k;
            }
        }
    }
}

static void lay(struct tensor *tensor, const int order[SHAPE_MAX_DIMS])
{
    int64_t step = 1;
    for (int i = 0; i < tensor->shape.dims; i++) {
        tensor->stride[order[i]] = step;
        step = shape_product(step,
                             tensor->shape.size[order[i]] > 0 ? tensor->shape.size[order[i]] : 1);
    }
    tensor->transposed = !lies_by_rows(&tensor->shape, tensor->stride);
}

struct tensor *tensor_elementwise(struct engine *engine, const struct shape *shape,
                                  enum dtype dtype, struct tensor *const *operands, int count)
{
    int64_t stride[LAYOUT_MAX_OPERANDS][SHAPE_MAX_DIMS];
    int order[SHAPE_MAX_DIMS];
    bool is_by_rows = true;
    for (int i = 0; i < count; i++) {
        is_by_rows = is_by_rows && !operands[i]->transposed;
    }
    struct tensor *result = tensor_new(engine, shape, dtype);
    if (!is_by_rows) {
        for (int i = 0; i < count; i++) {
            aligned_strides(operands[i], shape, stride[i]);
        }
        sort_dimensions(shape, stride, count, order);
        lay(result, order);
    }
    return result;
}

struct tensor *tensor_like_it_lies(struct engine *engine, struct tensor *model)
{
    return tensor_elementwise(engine, &model->shape, model->dtype, &model, 1);
}

/* --- memory formats ---------------------------------------------------------------------- */

static const int channels_last[SHAPE_MAX_DIMS] = {1, 3, 2,
                                                  0}; /* from the innermost dimension outwards */

enum memory_format tensor_format(const struct tensor *tensor)
{
    const int64_t *stride = tensor->stride; /* also where sizes of 1 make it lie by rows */
    int64_t least = 0;
    bool is_known = !tensor->transposed || !lies_by_rows(&tensor->shape, stride);
    if (tensor->shape.dims != 4 || !is_known || stride[1] == 0) {
        return FORMAT_ROWS;
    }
    for (int i = 0; i < 4; i++) {
        int d = channels_last[i];
        if (tensor->shape.size[d] == 0 || stride[d] < least || (d == 0 && least == stride[1])) {
            return FORMAT_ROWS;
        }
        least = shape_product(stride[d], tensor->shape.size[d]);
    }
    return FORMAT_CHANNELS_LAST;
}

bool tensor_lies_as(const struct tensor *tensor, enum memory_format format)
{
    int64_t stride[SHAPE_MAX_DIMS], step = 1;
    if (format != FORMAT_CHANNELS_LAST || tensor->shape.dims != 4) {
        return format == FORMAT_ANY || !tensor->transposed;
    }
    if (!tensor_layout(tensor, stride)) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        int64_t size = tensor->shape.size[channels_last[i]];
        if (size != 1 && stride[channels_last[i]] != step) {
            return false;
        }
        step = shape_product(step, size);
    }
    return true;
}

struct tensor *tensor_new_as(struct engine *engine, const struct shape *shape, enum dtype dtype,
                             enum memory_format format)
{
    struct tensor *tensor = tensor_new(engine, shape, dtype);
    if (format == FORMAT_CHANNELS_LAST && shape->dims == 4) {
        lay(tensor, channels_last);
    }
    return tensor;
}

struct tensor *tensor_expect(struct engine *engine, struct tensor *tensor,
                             enum memory_format format)
{
    return tensor_lies_as(tensor, format)
               ? tensor_keep(tensor)
               : tensor_new_as(engine, &tensor->shape, tensor->dtype, format);
}
