/* shape.c - concatenation, and views of parts of a tensor. */
#include "gmd_operations.h"

/* recipe.shape: of the input; recipe.number: */
enum { DIMENSION };

static gmd_node *node_over(gmd_engine *engine, const char *name, gmd_backward backward,
                           gmd_tensor *a)
{
    if (!gmd_tensor_tracked(engine, a)) {
        return NULL;
    }
    gmd_node *node = gmd_node_new(engine, name, backward, 1);
    gmd_node_connect(engine, node, 0, a);
    node->recipe.shape[0] = a->shape;
    node->recipe.dtype = a->dtype;
    return node;
}

static void give(gmd_engine *engine, gmd_node *node, gmd_tensor *result)
{
    if (node) {
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
}

static bool has_dimension(gmd_engine *engine, const char *what, const gmd_tensor *a, int dimension)
{
    char text[128];
    if (dimension >= 0 && dimension < a->shape.dims) {
        return true;
    }
    gmd_misuse(engine, "%s: a tensor of shape %s has no dimension %d (they count from 1)", what,
               gmd_shape_text(&a->shape, text), dimension + 1);
    return false;
}

/* --- views ------------------------------------------------------------------------------- */

/* Zeros of the whole, into which the part's gradient is written. */
static void part_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                          gmd_tensor **results)
{
    (void)grads;
    results[0] = gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

static gmd_tensor *part(gmd_engine *engine, gmd_tensor *a, const gmd_shape *shape, int dimension)
{
    gmd_tensor *result = gmd_tensor_view(engine, a, shape);
    for (int i = 0; i < dimension; i++) {
        result->transposed |= a->shape.size[i] > 1; /* there are gaps between its rows */
    }
    give(engine, node_over(engine, "SliceBackward", part_backward, a), result);
    return result;
}

gmd_tensor *gmd_op_narrow(gmd_engine *engine, gmd_tensor *a, int dimension, int64_t length)
{
    if (!a || !has_dimension(engine, "narrow", a, dimension)) {
        return NULL;
    }
    if (length > a->shape.size[dimension]) {
        gmd_misuse(engine, "narrow: %lld of %lld", (long long)length,
                   (long long)a->shape.size[dimension]);
        return NULL;
    }
    gmd_shape shape = a->shape;
    shape.size[dimension] = length;
    return part(engine, a, &shape, dimension);
}

static gmd_shape without(const gmd_shape *shape, int dimension)
{
    gmd_shape rest = {shape->dims - 1, {0}};
    for (int i = 0; i < rest.dims; i++) {
        rest.size[i] = shape->size[i < dimension ? i : i + 1];
    }
    return rest;
}

gmd_tensor *gmd_op_select(gmd_engine *engine, gmd_tensor *a, int dimension)
{
    if (!a || !has_dimension(engine, "select", a, dimension)) {
        return NULL;
    }
    gmd_shape shape = without(&a->shape, dimension);
    return part(engine, a, &shape, dimension);
}

/* A view on the way back, too. */
static void transpose_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                               gmd_tensor **results)
{
    results[0] = gmd_tensor_view(engine, grads[0], &node->recipe.shape[0]);
    results[0]->transposed = !grads[0]->transposed;
}

gmd_tensor *gmd_op_transpose(gmd_engine *engine, gmd_tensor *a, int first, int second)
{
    if (!a || !has_dimension(engine, "transpose", a, first) ||
        !has_dimension(engine, "transpose", a, second)) {
        return NULL;
    }
    gmd_shape shape = a->shape;
    shape.size[first] = a->shape.size[second];
    shape.size[second] = a->shape.size[first];
    gmd_tensor *result = gmd_tensor_view(engine, a, &shape);
    result->transposed = !a->transposed;
    give(engine, node_over(engine, "TransposeBackward", transpose_backward, a), result);
    return result;
}

static void clone_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                           gmd_tensor **results)
{
    (void)engine;
    (void)node;
    results[0] = gmd_tensor_keep(grads[0]);
}

gmd_tensor *gmd_op_contiguous(gmd_engine *engine, gmd_tensor *a)
{
    if (!a || !a->transposed) {
        return gmd_tensor_keep(a);
    }
    gmd_tensor *result = gmd_tensor_like(engine, a);
    give(engine, node_over(engine, "CloneBackward", clone_backward, a), result);
    return result;
}

/* --- many from one ----------------------------------------------------------------------- */

/* The gradients of all parts in one new tensor. */
static void unbind_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                            gmd_tensor **results)
{
    results[0] = gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    for (uint32_t i = 0; i < node->output_count; i++) {
        gmd_tensor_drop(engine, grads[i]);
        grads[i] = NULL;
    }
}

void gmd_op_unbind(gmd_engine *engine, gmd_tensor *a, int dimension, gmd_tensor **parts)
{
    uint32_t count = (uint32_t)a->shape.size[dimension];
    gmd_shape shape = without(&a->shape, dimension);
    gmd_node *node = node_over(engine, "UnbindBackward", unbind_backward, a);
    if (node) {
        gmd_node_outputs(engine, node, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = gmd_tensor_view(engine, a, &shape);
        parts[i]->transposed |= dimension > 0;
        if (node) {
            gmd_node_result(node, i, parts[i]);
        }
    }
    gmd_node_drop(engine, node);
}

/* --- one from many ----------------------------------------------------------------------- */

/* Each input's gradient is a view of its part; recipe.shape[1] is the first input's. */
static void cat_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                         gmd_tensor **results)
{
    for (uint32_t i = 0; i < node->edge_count; i++) {
        if (gmd_node_wants(node, i)) {
            results[i] = gmd_tensor_view(engine, grads[0], &node->recipe.shape[1]);
            results[i]->shape.size[node->recipe.number[DIMENSION]] = node->sizes[i];
            results[i]->transposed |= node->recipe.number[DIMENSION] > 0;
        }
    }
}

static void stack_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                           gmd_tensor **results)
{
    for (uint32_t i = 0; i < node->edge_count; i++) {
        if (gmd_node_wants(node, i)) {
            results[i] = gmd_tensor_view(engine, grads[0], &node->recipe.shape[1]);
            results[i]->transposed |= node->recipe.number[DIMENSION] > 0;
        }
    }
}

static bool any_tracked(const gmd_engine *engine, gmd_tensor *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (gmd_tensor_tracked(engine, parts[i])) {
            return true;
        }
    }
    return false;
}

static gmd_tensor *join(gmd_engine *engine, const char *name, gmd_backward backward,
                        gmd_tensor *const *parts, size_t count, int dimension,
                        const gmd_shape *shape)
{
    gmd_dtype dtype = parts[0]->dtype;
    for (size_t i = 1; i < count; i++) {
        dtype = gmd_dtype_promoted(dtype, parts[i]->dtype);
    }
    gmd_tensor *result = gmd_tensor_new(engine, shape, dtype);
    if (!any_tracked(engine, parts, count)) {
        return result;
    }
    gmd_node *node = gmd_node_new(engine, name, backward, (uint32_t)count);
    node->sizes = gmd_take(engine, count * sizeof(int64_t));
    for (size_t i = 0; i < count; i++) {
        gmd_node_connect(engine, node, (uint32_t)i, parts[i]);
        node->sizes[i] = parts[i]->shape.dims > dimension ? parts[i]->shape.size[dimension] : 1;
    }
    node->recipe = (gmd_recipe){
        .shape = {*shape, parts[0]->shape}, .dtype = dtype, .number = {(uint64_t)dimension}};
    give(engine, node, result);
    return result;
}

static bool same_but(const gmd_shape *a, const gmd_shape *b, int dimension)
{
    for (int i = 0; i < a->dims && a->dims == b->dims; i++) {
        if (i != dimension && a->size[i] != b->size[i]) {
            return false;
        }
    }
    return a->dims == b->dims;
}

static bool joinable(gmd_engine *engine, const char *what, gmd_tensor *const *parts, size_t count,
                     int dimension)
{
    char left[128], right[128];
    for (size_t i = 0; i < count; i++) {
        if (!parts[i]) {
            return false;
        }
        if (!same_but(&parts[0]->shape, &parts[i]->shape, dimension)) {
            gmd_misuse(engine, "%s: shapes %s and %s differ", what,
                       gmd_shape_text(&parts[0]->shape, left),
                       gmd_shape_text(&parts[i]->shape, right));
            return false;
        }
    }
    return count > 0;
}

gmd_tensor *gmd_op_cat(gmd_engine *engine, gmd_tensor *const *parts, size_t count, int dimension)
{
    if (!joinable(engine, "cat", parts, count, dimension) ||
        !has_dimension(engine, "cat", parts[0], dimension)) {
        return NULL;
    }
    gmd_shape shape = parts[0]->shape;
    for (size_t i = 1; i < count; i++) {
        shape.size[dimension] += parts[i]->shape.size[dimension];
    }
    return join(engine, "CatBackward", cat_backward, parts, count, dimension, &shape);
}

gmd_tensor *gmd_op_stack(gmd_engine *engine, gmd_tensor *const *parts, size_t count, int dimension)
{
    if (!joinable(engine, "stack", parts, count, -1)) {
        return NULL;
    }
    gmd_shape shape = {parts[0]->shape.dims + 1, {0}};
    if (shape.dims > GMD_MAX_DIMS || dimension < 0 || dimension >= shape.dims) {
        gmd_misuse(engine, "stack: no dimension %d (they count from 1)", dimension + 1);
        return NULL;
    }
    for (int i = 0; i < shape.dims; i++) {
        shape.size[i] = i == dimension  ? (int64_t)count
                        : i < dimension ? parts[0]->shape.size[i]
                                        : parts[0]->shape.size[i - 1];
    }
    return join(engine, "StackBackward", stack_backward, parts, count, dimension, &shape);
}
