/* masks.c - comparisons, and what is chosen by them. Facts: derivatives.yaml, TensorCompare.cpp and
 * TriangularOps.cu of PyTorch 2.11. */
#include "gmd_layout.h"
#include "gmd_more_operations.h"
#include "reduce.h"

/* Both broadcast against each other. */
static bool shape_of_both(struct engine *engine, const char *what, const struct shape *a,
                          const struct shape *b, struct shape *shape)
{
    char left[128], right[128];
    shape->dims = a->dims > b->dims ? a->dims : b->dims;
    for (int i = 1; i <= shape->dims; i++) {
        int64_t m = i <= a->dims ? a->size[a->dims - i] : 1;
        int64_t n = i <= b->dims ? b->size[b->dims - i] : 1;
        if (m != n && m != 1 && n != 1) {
            engine_misuse(engine, "%s: shapes %s and %s differ", what, shape_text(a, left),
                          shape_text(b, right));
            return false;
        }
        shape->size[shape->dims - i] = m == 1 ? n : m;
    }
    return true;
}

struct tensor *op_compare(struct engine *engine, struct tensor *a, struct tensor *b)
{
    struct shape shape;
    if (!a || (b && !shape_of_both(engine, "a comparison", &a->shape, &b->shape, &shape))) {
        return NULL;
    }
    struct tensor *const operands[] = {a, b};
    return tensor_elementwise(engine, b ? &shape : &a->shape, DTYPE_BOOL, operands, b ? 2 : 1);
}

static bool is_mask(struct engine *engine, const char *what, const struct tensor *mask)
{
    if (mask->dtype == DTYPE_BOOL) {
        return true;
    }
    engine_misuse(engine, "%s takes a mask of bool; this one is %s", what, dtype_name(mask->dtype));
    return false;
}

/* The gradient is filled in the same way: a copy of it, in rows. */
static void masked_fill_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                 struct tensor **results)
{
    const struct shape *shape = &node->recipe.shape[0];
    struct tensor *filled = tensor_like(engine, grads[0]);
    bool was_expanded = shape_count(shape) != shape_count(&filled->shape);
    node_done_with_saved(engine, node);
    results[0] = was_expanded ? reduce_to(engine, &filled->shape, shape, filled->dtype)
                              : tensor_keep(filled);
    tensor_drop(engine, filled);
}

/* Out of place the copy may be larger than what is filled. */
struct tensor *op_masked_fill(struct engine *engine, struct tensor *a, struct tensor *mask,
                              bool in_place)
{
    struct shape shape;
    if (!a || !mask || !is_mask(engine, "masked_fill", mask) ||
        !shape_of_both(engine, "masked_fill", &a->shape, &mask->shape, &shape)) {
        return NULL;
    }
    struct tensor *result =
        in_place ? tensor_alias(engine, a) : tensor_new(engine, &shape, a->dtype);
    node_over_saving(engine, "MaskedFillBackward", masked_fill_backward, a, result, mask);
    return result;
}

/* --- one of two --------------------------------------------------------------------------- */

enum { RESULT, FIRST }; /* recipe.shape: the result's, then those of both */

/* What was not chosen gets a zero, which is a tensor of one element. The second one comes first. */
static void where_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    static const struct shape scalar = {0, {0}};
    (void)grads;
    for (uint32_t i = 2; i-- > 0;) {
        if (!node_wants(node, i)) {
            continue;
        }
        const struct shape *shape = &node->recipe.shape[FIRST + i];
        struct tensor *zero = tensor_new(engine, &scalar, node->recipe.dtype);
        struct tensor *chosen = tensor_new(engine, &node->recipe.shape[RESULT], node->recipe.dtype);
        tensor_drop(engine, zero);
        bool was_expanded = shape_count(shape) != shape_count(&chosen->shape);
        struct tensor *sum = was_expanded ? reduce_to(engine, &chosen->shape, shape, chosen->dtype)
                                          : tensor_keep(chosen);
        tensor_drop(engine, chosen);
        results[i] = op_cast(engine, sum, (enum dtype)node->recipe.number[i]);
        tensor_drop(engine, sum);
    }
}

static void record_where(struct engine *engine, struct tensor *condition,
                         struct tensor *const parts[2], struct tensor *result)
{
    if (!tensor_tracked(engine, parts[0]) && !tensor_tracked(engine, parts[1])) {
        return;
    }
    struct node *node = node_new(engine, "WhereBackward", where_backward, 2);
    node->recipe.shape[RESULT] = result->shape;
    node->recipe.dtype = result->dtype;
    for (uint32_t i = 0; i < 2; i++) {
        if (parts[i]) {
            node_connect(engine, node, i, parts[i]);
            node->recipe.shape[FIRST + i] = parts[i]->shape;
            node->recipe.number[i] = parts[i]->dtype;
        }
    }
    node_save(node, condition);
    node_result(node, 0, result);
    node_drop(engine, node);
}

static bool where_shape(struct engine *engine, const struct tensor *condition,
                        struct tensor *const parts[2], struct shape *shape)
{
    *shape = condition->shape;
    for (int i = 0; i < 2; i++) {
        struct shape before = *shape;
        if (parts[i] && !shape_of_both(engine, "where", &before, &parts[i]->shape, shape)) {
            return false;
        }
    }
    return true;
}

/* A number is a tensor of one element on the device, for the time of the call. */
struct tensor *op_where(struct engine *engine, struct tensor *condition, struct tensor *a,
                        struct tensor *b)
{
    static const struct shape scalar = {0, {0}};
    struct tensor *const parts[2] = {a, b};
    struct shape shape;
    if (!condition || !is_mask(engine, "where", condition) ||
        !where_shape(engine, condition, parts, &shape)) {
        return NULL;
    }
    enum dtype dtype = a && b ? dtype_promoted(a->dtype, b->dtype)
                       : a    ? a->dtype
                       : b    ? b->dtype
                              : DTYPE_FLOAT32;
    struct tensor *numbers[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        numbers[i] = parts[i] ? NULL : tensor_new(engine, &scalar, dtype);
    }
    struct tensor *operands[LAYOUT_MAX_OPERANDS] = {condition, a ? a : numbers[0],
                                                    b ? b : numbers[1]};
    struct tensor *result = tensor_elementwise(engine, &shape, dtype, operands, 3);
    record_where(engine, condition, parts, result);
    tensor_drop(engine, numbers[1]);
    tensor_drop(engine, numbers[0]);
    return result;
}

/* --- triangles ---------------------------------------------------------------------------- */

static void triangle_backward(struct engine *engine, struct node *node, struct tensor **grads,
                              struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

struct tensor *op_triangle(struct engine *engine, struct tensor *a, bool upper)
{
    char text[128];
    if (!a) {
        return NULL;
    }
    if (a->shape.dims < 2) {
        engine_misuse(engine, "a triangle is of matrices, and this tensor is %s",
                      shape_text(&a->shape, text));
        return NULL;
    }
    struct tensor *result = tensor_like(engine, a);
    node_drop(engine, node_over(engine, upper ? "TriuBackward" : "TrilBackward", triangle_backward,
                                a, result));
    return result;
}
