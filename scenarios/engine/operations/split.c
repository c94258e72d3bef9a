/* split.c - a tensor taken apart along a dimension. Facts: split_with_sizes_backward() in
 * FunctionsManual.cpp of PyTorch 2.11. */
#include "gmd_dot_attention.h"
#include "gmd_layout.h"

enum { DIMENSION }; /* of recipe.number */

static struct shape part_shape(const struct node *node, uint32_t i)
{
    struct shape shape = node->recipe.shape[0];
    shape.size[node->recipe.number[DIMENSION]] = node->sizes[i];
    return shape;
}

/* The gradients of all parts are joined; of those that nothing came back from, zeros. */
static void split_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    uint32_t count = (uint32_t)node->recipe.number[DIMENSION + 1];
    for (uint32_t i = 0; i < count; i++) {
        struct shape shape = part_shape(node, i);
        grads[i] = grads[i] ? grads[i] : tensor_new(engine, &shape, node->recipe.dtype);
    }
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    for (uint32_t i = 0; i < count; i++) {
        tensor_drop(engine, grads[i]);
        grads[i] = NULL;
    }
}

static struct node *split_node(struct engine *engine, struct tensor *a, int dimension,
                               const int64_t *sizes, uint32_t count)
{
    if (!tensor_tracked(engine, a)) {
        return NULL;
    }
    struct node *node = node_new(engine, "SplitWithSizesBackward", split_backward, 1);
    node_connect(engine, node, 0, a);
    node_outputs(engine, node, count);
    node->recipe.shape[0] = a->shape;
    node->recipe.dtype = a->dtype;
    node->recipe.number[DIMENSION] = (uint64_t)dimension;
    node->recipe.number[DIMENSION + 1] = count;
    node->sizes = host_take(engine, count * sizeof *sizes);
    for (uint32_t i = 0; i < count; i++) {
        node->sizes[i] = sizes[i];
    }
    return node;
}

void op_split(struct engine *engine, struct tensor *a, int dimension, const int64_t *sizes,
              uint32_t count, struct tensor **parts)
{
    int64_t stride[SHAPE_MAX_DIMS];
    struct node *node = split_node(engine, a, dimension, sizes, count);
    tensor_layout(a, stride);
    for (uint32_t i = 0; i < count; i++) {
        struct shape shape = a->shape;
        shape.size[dimension] = sizes[i];
        parts[i] = tensor_laid(engine, a, &shape, stride);
        if (node) {
            node_result(node, i, parts[i]);
        }
    }
    node_drop(engine, node);
}
