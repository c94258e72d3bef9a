/* rearrange.c - copies with the elements in other places: reversed, rolled, padded, repeated.
 * Facts: TensorTransformations.cpp and cuda/TensorTransformations.cu, PadNd.cpp, TensorShape.cpp
 * (repeat) and FunctionsManual.cpp of PyTorch 2.11. */
#include "gmd_layout.h"
#include "gmd_more_operations.h"

/* A gradient of the input's shape, made anew. */
static void like_input_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

struct tensor *op_flip(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = tensor_like_it_lies(engine, a);
    node_drop(engine, node_over(engine, "FlipBackward", like_input_backward, a, result));
    return result;
}

/* Rows are read: what does not lie so is copied first. */
static struct tensor *rolled(struct engine *engine, struct tensor *a)
{
    bool is_copied = a->transposed || a->expanded;
    struct tensor *rows = is_copied ? tensor_new(engine, &a->shape, a->dtype) : tensor_keep(a);
    struct tensor *result = tensor_new(engine, &a->shape, a->dtype);
    tensor_drop(engine, rows);
    return result;
}

static void roll_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    (void)node;
    results[0] = rolled(engine, grads[0]);
}

struct tensor *op_roll(struct engine *engine, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct tensor *result = rolled(engine, a);
    node_drop(engine, node_over(engine, "RollBackward", roll_backward, a, result));
    return result;
}

struct tensor *op_pad(struct engine *engine, struct tensor *a, const int64_t *margins, int count)
{
    char text[128];
    if (!a) {
        return NULL;
    }
    struct shape shape = a->shape;
    for (int i = 0; i < count / 2; i++, margins += 2) {
        int64_t *size = &shape.size[shape.dims - 1 - i];
        *size += margins[0] + margins[1];
        if (*size < 0) {
            engine_misuse(engine, "pad: nothing is left of %s", shape_text(&a->shape, text));
            return NULL;
        }
    }
    struct tensor *result = tensor_new(engine, &shape, a->dtype);
    node_drop(engine, node_over(engine, "ConstantPadNdBackward", like_input_backward, a, result));
    return result;
}

/* --- repeats ------------------------------------------------------------------------------ */

enum { INPUT, REPEATS }; /* of recipe.shape */

/* What was repeated is summed: over new dimensions one after the other, over all others at once. */
static void repeat_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    const struct shape *input = &node->recipe.shape[INPUT], *repeats = &node->recipe.shape[REPEATS];
    int lead = repeats->dims - input->dims;
    struct tensor *grad = tensor_keep(grads[0]);
    for (int i = 0; i < lead; i++) {
        struct tensor *whole = grad;
        grad = op_sum(engine, whole, 1, false);
        tensor_drop(engine, whole);
    }
    struct shape apart = {0, {0}};
    uint32_t summed = 0;
    for (int i = 0; i < input->dims; i++) {
        if (repeats->size[lead + i] != 1) {
            summed |= 1u << apart.dims;
            apart.size[apart.dims++] = repeats->size[lead + i];
        }
        apart.size[apart.dims++] = input->size[i];
    }
    struct tensor *parts = op_reshape_or_copy(engine, grad, &apart);
    results[0] = summed ? op_sum(engine, parts, summed, false) : tensor_keep(parts);
    tensor_drop(engine, parts);
    tensor_drop(engine, grad);
}

struct tensor *op_tile(struct engine *engine, struct tensor *a, const struct shape *repeats)
{
    char text[128];
    int lead = a ? repeats->dims - a->shape.dims : 0, apart = a ? a->shape.dims : 0;
    struct shape shape = *repeats;
    for (int i = 0; a && i < repeats->dims; i++) {
        apart += i >= lead && repeats->size[i] != 1;
        shape.size[i] = shape_product(repeats->size[i], i < lead ? 1 : a->shape.size[i - lead]);
    }
    if (!a) {
        return NULL;
    }
    if (lead < 0 || apart > SHAPE_MAX_DIMS || shape_count(repeats) == 0) {
        engine_misuse(engine,
                      "tile: a number of 1 or more for each dimension of %s, and at most %d "
                      "dimensions with the repeated ones",
                      shape_text(&a->shape, text), SHAPE_MAX_DIMS);
        return NULL;
    }
    struct tensor *result = tensor_new(engine, &shape, a->dtype);
    struct node *node = node_over(engine, "RepeatBackward", repeat_backward, a, result);
    if (node) {
        node->recipe.shape[REPEATS] = *repeats;
    }
    node_drop(engine, node);
    return result;
}
