/* shape.c - concatenation, and views of parts of a tensor. */
#include "gmd_layout.h"
#include "gmd_operations.h"

/* recipe.shape: the input's; indices of recipe.number: */
enum { DIMENSION };

static struct node *new_node(struct engine *engine, const char *name, backward_fn backward,
                             struct tensor *a)
{
    if (!tensor_tracked(engine, a)) {
        return NULL;
    }
    struct node *node = node_new(engine, name, backward, 1);
    node_connect(engine, node, 0, a);
    node->recipe.shape[0] = a->shape;
    node->recipe.dtype = a->dtype;
    return node;
}

static void give(struct engine *engine, struct node *node, struct tensor *result)
{
    if (node) {
        node_result(node, 0, result);
        node_drop(engine, node);
    }
}

static bool has_dimension(struct engine *engine, const char *what, const struct tensor *a,
                          int dimension)
{
    char text[128];
    if (dimension >= 0 && dimension < a->shape.dims) {
        return true;
    }
    engine_misuse(engine, "%s: a tensor of shape %s has no dimension %d (they count from 1)", what,
                  shape_text(&a->shape, text), dimension + 1);
    return false;
}

/* --- views ------------------------------------------------------------------------------- */

/* Zeros in the shape of the whole; the part's gradient is written into them. */
static void part_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

static struct tensor *part(struct engine *engine, struct tensor *a, const struct shape *shape,
                           const int64_t stride[SHAPE_MAX_DIMS])
{
    struct tensor *result = tensor_laid(engine, a, shape, stride);
    give(engine, new_node(engine, "SliceBackward", part_backward, a), result);
    return result;
}

struct tensor *op_narrow(struct engine *engine, struct tensor *a, int dimension, int64_t length)
{
    if (!a || !has_dimension(engine, "narrow", a, dimension)) {
        return NULL;
    }
    if (length > a->shape.size[dimension]) {
        engine_misuse(engine, "narrow: a length of %lld, of %lld", (long long)length,
                      (long long)a->shape.size[dimension]);
        return NULL;
    }
    int64_t stride[SHAPE_MAX_DIMS];
    struct shape shape = a->shape;
    tensor_layout(a, stride);
    shape.size[dimension] = length;
    return part(engine, a, &shape, stride);
}

static struct shape without(const struct shape *shape, int dimension)
{
    struct shape rest = {shape->dims - 1, {0}};
    for (int i = 0; i < rest.dims; i++) {
        rest.size[i] = shape->size[i < dimension ? i : i + 1];
    }
    return rest;
}

struct tensor *op_select(struct engine *engine, struct tensor *a, int dimension)
{
    if (!a || !has_dimension(engine, "select", a, dimension)) {
        return NULL;
    }
    int64_t stride[SHAPE_MAX_DIMS];
    struct shape shape = without(&a->shape, dimension);
    tensor_layout(a, stride);
    for (int i = dimension; i < shape.dims; i++) {
        stride[i] = stride[i + 1];
    }
    return part(engine, a, &shape, stride);
}

static void clone_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    (void)engine;
    (void)node;
    results[0] = tensor_keep(grads[0]);
}

struct tensor *op_contiguous(struct engine *engine, struct tensor *a)
{
    if (!a || !a->transposed) {
        return tensor_keep(a);
    }
    struct tensor *result = tensor_like(engine, a);
    give(engine, new_node(engine, "CloneBackward", clone_backward, a), result);
    return result;
}

/* --- many from one ----------------------------------------------------------------------- */

/* The gradients of all parts in one new tensor. */
static void unbind_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    for (uint32_t i = 0; i < node->output_count; i++) {
        tensor_drop(engine, grads[i]);
        grads[i] = NULL;
    }
}

void op_unbind(struct engine *engine, struct tensor *a, int dimension, struct tensor **parts)
{
    uint32_t count = (uint32_t)a->shape.size[dimension];
    struct shape shape = without(&a->shape, dimension);
    struct node *node = new_node(engine, "UnbindBackward", unbind_backward, a);
    if (node) {
        node_outputs(engine, node, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = tensor_view(engine, a, &shape);
        parts[i]->transposed |= dimension > 0;
        if (node) {
            node_result(node, i, parts[i]);
        }
    }
    node_drop(engine, node);
}

/* --- one from many ----------------------------------------------------------------------- */

/* Each input's gradient is a view of its part; recipe.shape[1] is the first input's. */
static void cat_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    for (uint32_t i = 0; i < node->edge_count; i++) {
        if (node_wants(node, i)) {
            results[i] = tensor_view(engine, grads[0], &node->recipe.shape[1]);
            results[i]->shape.size[node->recipe.number[DIMENSION]] = node->sizes[i];
            results[i]->transposed |= node->recipe.number[DIMENSION] > 0;
        }
    }
}

static void stack_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    for (uint32_t i = 0; i < node->edge_count; i++) {
        if (node_wants(node, i)) {
            results[i] = tensor_view(engine, grads[0], &node->recipe.shape[1]);
            results[i]->transposed |= node->recipe.number[DIMENSION] > 0;
        }
    }
}

static bool any_tracked(const struct engine *engine, struct tensor *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tensor_tracked(engine, parts[i])) {
            return true;
        }
    }
    return false;
}

static struct tensor *join(struct engine *engine, const char *name, backward_fn backward,
                           struct tensor *const *parts, size_t count, int dimension,
                           const struct shape *shape)
{
    enum dtype dtype = parts[0]->dtype;
    for (size_t i = 1; i < count; i++) {
        dtype = dtype_promoted(dtype, parts[i]->dtype);
    }
    struct tensor *result = tensor_new(engine, shape, dtype);
    if (!any_tracked(engine, parts, count)) {
        return result;
    }
    struct node *node = node_new(engine, name, backward, (uint32_t)count);
    node->sizes = host_take(engine, count * sizeof(int64_t));
    for (size_t i = 0; i < count; i++) {
        node_connect(engine, node, (uint32_t)i, parts[i]);
        node->sizes[i] = parts[i]->shape.dims > dimension ? parts[i]->shape.size[dimension] : 1;
    }
    node->recipe = (struct recipe){
        .shape = {*shape, parts[0]->shape}, .dtype = dtype, .number = {(uint64_t)dimension}};
    give(engine, node, result);
    return result;
}

static bool same_but(const struct shape *a, const struct shape *b, int dimension)
{
    for (int i = 0; i < a->dims && a->dims == b->dims; i++) {
        if (i != dimension && a->size[i] != b->size[i]) {
            return false;
        }
    }
    return a->dims == b->dims;
}

static bool joinable(struct engine *engine, const char *what, struct tensor *const *parts,
                     size_t count, int dimension)
{
    char left[128], right[128];
    for (size_t i = 0; i < count; i++) {
        if (!parts[i]) {
            return false;
        }
        if (!same_but(&parts[0]->shape, &parts[i]->shape, dimension)) {
            engine_misuse(engine, "%s: shapes %s and %s differ", what,
                          shape_text(&parts[0]->shape, left), shape_text(&parts[i]->shape, right));
            return false;
        }
    }
    return count > 0;
}

struct tensor *op_cat(struct engine *engine, struct tensor *const *parts, size_t count,
                      int dimension)
{
    if (!joinable(engine, "cat", parts, count, dimension) ||
        !has_dimension(engine, "cat", parts[0], dimension)) {
        return NULL;
    }
    struct shape shape = parts[0]->shape;
    for (size_t i = 1; i < count; i++) {
        shape.size[dimension] += parts[i]->shape.size[dimension];
    }
    return join(engine, "CatBackward", cat_backward, parts, count, dimension, &shape);
}

struct tensor *op_stack(struct engine *engine, struct tensor *const *parts, size_t count,
                        int dimension)
{
    if (!joinable(engine, "stack", parts, count, -1)) {
        return NULL;
    }
    struct shape shape = {parts[0]->shape.dims + 1, {0}};
    if (shape.dims > SHAPE_MAX_DIMS || dimension < 0 || dimension >= shape.dims) {
        engine_misuse(engine, "stack: no dimension %d (they count from 1)", dimension + 1);
        return NULL;
    }
    for (int i = 0; i < shape.dims; i++) {
        shape.size[i] = i == dimension  ? (int64_t)count
                        : i < dimension ? parts[0]->shape.size[i]
                                        : parts[0]->shape.size[i - 1];
    }
    return join(engine, "StackBackward", stack_backward, parts, count, dimension, &shape);
}
