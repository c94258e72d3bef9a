/* indexing.c - elements chosen by a tensor of indices. Facts: derivatives.yaml, IndexKernel and
 * ScatterGatherKernel.cu of PyTorch 2.11. */
#include "gmd_autocast.h"
#include "gmd_more_operations.h"

/* Zeros as large as the input, into which the gradient is added. */
static void spread_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

static bool are_indices(struct engine *engine, const char *what, const struct tensor *indices)
{
    if (indices->dtype == DTYPE_INT64 || indices->dtype == DTYPE_INT32) {
        return true;
    }
    engine_misuse(engine, "%s takes indices of int64 or int32; these are %s", what,
                  dtype_name(indices->dtype));
    return false;
}

struct tensor *op_index_select(struct engine *engine, struct tensor *a, int dimension,
                               struct tensor *indices)
{
    char text[128];
    if (!a || !indices || !are_indices(engine, "index_select", indices)) {
        return NULL;
    }
    if (indices->shape.dims > 1) {
        engine_misuse(engine, "index_select takes indices of one dimension; these are %s",
                      shape_text(&indices->shape, text));
        return NULL;
    }
    struct shape shape = a->shape;
    shape.size[dimension] = (int64_t)shape_count(&indices->shape);
    struct tensor *result = tensor_new(engine, &shape, a->dtype);
    node_over_saving(engine, "IndexSelectBackward", spread_backward, a, result, indices);
    return result;
}

/* The indices have as many dimensions, and no more along the others. */
static bool fit(struct engine *engine, const char *what, const struct tensor *a, int dimension,
                const struct tensor *indices)
{
    char left[128], right[128];
    bool fits = a->shape.dims == indices->shape.dims;
    for (int i = 0; fits && i < a->shape.dims; i++) {
        fits = i == dimension || indices->shape.size[i] <= a->shape.size[i];
    }
    if (!fits) {
        engine_misuse(engine, "%s: indices %s do not lie in %s", what,
                      shape_text(&indices->shape, left), shape_text(&a->shape, right));
    }
    return fits && are_indices(engine, what, indices);
}

/* Its derivative knows the sizes of the input by the input itself. */
struct tensor *op_gather(struct engine *engine, struct tensor *a, int dimension,
                         struct tensor *indices)
{
    if (!a || !indices || !fit(engine, "gather", a, dimension, indices)) {
        return NULL;
    }
    struct tensor *result = tensor_new(engine, &indices->shape, a->dtype);
    struct node *node = node_over(engine, "GatherBackward", spread_backward, a, result);
    if (node) {
        node_save(node, indices);
        node_save(node, a);
    }
    node_drop(engine, node);
    return result;
}

/* --- sums by index ------------------------------------------------------------------------ */

enum { WHOLE, ADDED }; /* edges; recipe.shape */

/* The gradient itself, and what is gathered from it. */
static void scatter_add_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                 struct tensor **results)
{
    if (node_wants(node, ADDED)) {
        results[ADDED] = tensor_new(engine, &node->recipe.shape[ADDED], node->recipe.dtype);
    }
    results[WHOLE] = node_wants(node, WHOLE) ? tensor_keep(grads[0]) : NULL;
}

static struct tensor *scatter_add(struct engine *engine, struct tensor *a, struct tensor *indices,
                                  struct tensor *from)
{
    if (a->dtype != from->dtype) {
        engine_misuse(engine, "scatter_add: the types differ: %s and %s", dtype_name(a->dtype),
                      dtype_name(from->dtype));
        return NULL;
    }
    struct tensor *result = tensor_like(engine, a);
    if (tensor_tracked(engine, a) || tensor_tracked(engine, from)) {
        struct node *node = node_new(engine, "ScatterAddBackward", scatter_add_backward, 2);
        node_connect(engine, node, WHOLE, a);
        node_connect(engine, node, ADDED, from);
        node->recipe = (struct recipe){.shape = {a->shape, indices->shape}, .dtype = result->dtype};
        node_save(node, node_wants(node, ADDED) ? indices : NULL);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    return result;
}

struct tensor *op_scatter_add(struct engine *engine, struct tensor *a, int dimension,
                              struct tensor *indices, struct tensor *from)
{
    char left[128], right[128];
    if (!a || !indices || !from || !fit(engine, "scatter_add", a, dimension, indices)) {
        return NULL;
    }
    if (!shape_is(&indices->shape, &from->shape)) {
        engine_misuse(engine, "scatter_add: indices %s for elements %s",
                      shape_text(&indices->shape, left), shape_text(&from->shape, right));
        return NULL;
    }
    struct tensor *y = autocast_widest(engine, "scatter_add", from, a);
    struct tensor *x = autocast_widest(engine, "scatter_add", a, from);
    struct tensor *result = scatter_add(engine, x, indices, y);
    tensor_drop(engine, x);
    tensor_drop(engine, y);
    return result;
}
