/* products.c - products of matrices and of batches of them. Facts: ATen/native/LinearAlgebra.cpp
 * (matmul), cuda/Blas.cpp and derivatives.yaml of PyTorch 2.11. */
#include "products.h"
#include "gmd_autocast.h"
#include "gmd_layout.h"

/* --- operands of cuBLAS ------------------------------------------------------------------ */

bool product_reads(const struct tensor *matrix)
{
    int64_t stride[SHAPE_MAX_DIMS];
    int dims = matrix->shape.dims;
    if (!matrix->transposed || dims < 2) {
        return true;
    }
    bool is_known = tensor_layout(matrix, stride);
    int64_t rows = matrix->shape.size[dims - 2], columns = matrix->shape.size[dims - 1];
    int64_t down = stride[dims - 2], across = stride[dims - 1];
    return is_known && ((across == 1 && down >= (columns > 1 ? columns : 1)) ||
                        (down == 1 && across >= (rows > 1 ? rows : 1)));
}

static uint64_t copied_bytes(const struct tensor *operand)
{
    return product_reads(operand) ? 0 : tensor_bytes(operand);
}

void product_run(struct engine *engine, struct tensor *operand, uint64_t copied)
{
    uint64_t of_operand = copied_bytes(operand);
    struct storage *first = of_operand ? storage_new(engine, of_operand) : NULL;
    struct storage *second = copied ? storage_new(engine, copied) : NULL;
    cublas_workspace_use(engine, false);
    storage_drop(engine, second);
    storage_drop(engine, first);
}

/* --- a product of two matrices, or of as many as there are in a batch --------------------- */

/* Edges, recipe.shape; recipe.number: bytes that its copy takes, or 0, and, from BY_COLUMNS on,
 * whether it is a matrix that lies by columns. */
enum { LEFT, RIGHT, BY_COLUMNS };

static bool lies_by_columns(const struct tensor *matrix)
{
    int64_t stride[SHAPE_MAX_DIMS];
    return matrix->shape.dims == 2 && matrix->transposed && tensor_layout(matrix, stride) &&
           stride[0] == 1 && stride[1] == matrix->shape.size[0];
}

static struct tensor *like_input(struct engine *engine, const struct node *node, int index)
{
    return tensor_new(engine, &node->recipe.shape[index], node->recipe.dtype);
}

/* The second matrix's gradient comes first: autograd's generated code goes by the names of the
 * arguments (mat2, self). Each is a product of the gradient with the other matrix, and lies as the
 * matrix does. */
static void product_backward(struct engine *engine, struct node *node, struct tensor **grads,
                             struct tensor **results)
{
    for (int i = RIGHT; i >= LEFT; i--) {
        if (node_wants(node, (uint32_t)i)) {
            results[i] = like_input(engine, node, i);
            if (node->recipe.number[BY_COLUMNS + i]) {
                tensor_lay_swapped(results[i]);
            }
            product_run(engine, grads[0], node->recipe.number[RIGHT - i]);
        }
    }
}

static struct tensor *product(struct engine *engine, const char *name, backward_fn backward,
                              struct tensor *a, struct tensor *b, const struct shape *shape)
{
    struct tensor *result = tensor_new(engine, shape, a->dtype);
    product_run(engine, a, copied_bytes(b));
    if (tensor_tracked(engine, a) || tensor_tracked(engine, b)) {
        struct node *node = node_new(engine, name, backward, 2);
        node_connect(engine, node, LEFT, a);
        node_connect(engine, node, RIGHT, b);
        node->recipe = (struct recipe){
            .shape = {a->shape, b->shape},
            .dtype = a->dtype,
            .number = {copied_bytes(a), copied_bytes(b), lies_by_columns(a), lies_by_columns(b)}};
        node_save(node, node_wants(node, RIGHT) ? a : NULL);
        node_save(node, node_wants(node, LEFT) ? b : NULL);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    return result;
}

/* Two matrices, or two batches of as many. */
static struct tensor *of_batches(struct engine *engine, struct tensor *a, struct tensor *b)
{
    struct shape shape = a->shape;
    shape.size[shape.dims - 1] = b->shape.size[shape.dims - 1];
    return product(engine, shape.dims == 2 ? "MmBackward" : "BmmBackward", product_backward, a, b,
                   &shape);
}

/* --- more dimensions, and batches that are broadcast -------------------------------------- */

/* All dimensions but the last two as one: a copy where they do not lie as one. */
static struct tensor *one_batch(struct engine *engine, struct tensor *a, const struct shape *batch)
{
    struct shape whole = *batch, flat = {3, {1, 0, 0}};
    for (int i = 0; i < 2; i++) {
        whole.size[whole.dims - 2 + i] = flat.size[1 + i] = a->shape.size[a->shape.dims - 2 + i];
    }
    for (int i = 0; i < whole.dims - 2; i++) {
        flat.size[0] = shape_product(flat.size[0], whole.size[i]);
    }
    struct tensor *expanded =
        shape_is(&whole, &a->shape) ? tensor_keep(a) : op_expand(engine, a, &whole);
    struct tensor *result =
        whole.dims == 3 ? tensor_keep(expanded) : op_reshape_or_copy(engine, expanded, &flat);
    tensor_drop(engine, expanded);
    return result;
}

static struct tensor *batched(struct engine *engine, struct tensor *a, struct tensor *b,
                              const struct shape *shape)
{
    struct tensor *left = one_batch(engine, a, shape), *right = one_batch(engine, b, shape);
    struct tensor *flat = of_batches(engine, left, right);
    tensor_drop(engine, right);
    tensor_drop(engine, left);
    struct tensor *result =
        shape->dims == 3 ? tensor_keep(flat) : op_view_as_it_lies(engine, flat, shape);
    tensor_drop(engine, flat);
    return result;
}

/* A batch by one matrix: the rows of all the batch are one matrix. They are copied for it where the
 * matrix needs a gradient, which a batch of it would multiply. */
static struct tensor *by_one_matrix(struct engine *engine, struct tensor *a, struct tensor *b,
                                    const struct shape *shape)
{
    int64_t stride[SHAPE_MAX_DIMS], columns = a->shape.size[a->shape.dims - 1];
    int64_t rows = columns ? (int64_t)(shape_count(&a->shape) / (uint64_t)columns) : 0;
    struct shape flat = {2, {rows, columns}};
    if (!tensor_tracked(engine, b) && !tensor_viewable(a, &flat, stride)) {
        return batched(engine, a, b, shape);
    }
    struct tensor *matrix = op_reshape_or_copy(engine, a, &flat);
    struct tensor *product = of_batches(engine, matrix, b);
    struct tensor *result = op_view_as_it_lies(engine, product, shape);
    tensor_drop(engine, product);
    tensor_drop(engine, matrix);
    return result;
}

static struct tensor *across(struct engine *engine, struct tensor *a)
{
    return op_transpose(engine, a, a->shape.dims - 2, a->shape.dims - 1);
}

static struct tensor *matmul(struct engine *engine, struct tensor *a, struct tensor *b,
                             const struct shape *shape)
{
    if (b->shape.dims == 2 && a->shape.dims == 2) {
        return of_batches(engine, a, b);
    }
    if (b->shape.dims == 2) {
        return by_one_matrix(engine, a, b, shape);
    }
    if (a->shape.dims > 2 || !tensor_tracked(engine, a)) {
        return batched(engine, a, b, shape);
    }
    struct shape turned = *shape; /* (b' a')', and in rows again */
    turned.size[shape->dims - 1] = shape->size[shape->dims - 2];
    turned.size[shape->dims - 2] = shape->size[shape->dims - 1];
    struct tensor *left = across(engine, b), *right = across(engine, a);
    struct tensor *product = by_one_matrix(engine, left, right, &turned);
    struct tensor *view = across(engine, product), *result = op_contiguous(engine, view);
    tensor_drop(engine, view);
    tensor_drop(engine, product);
    tensor_drop(engine, right);
    tensor_drop(engine, left);
    return result;
}

/* Broadcasts the dimensions before the last two; false where the operands do not fit. */
static bool product_shape(const struct shape *a, const struct shape *b, struct shape *shape)
{
    if (a->dims < 2 || b->dims < 2 || a->size[a->dims - 1] != b->size[b->dims - 2]) {
        return false;
    }
    shape->dims = a->dims > b->dims ? a->dims : b->dims;
    for (int i = 0; i < shape->dims; i++) {
        int in_a = i - (shape->dims - a->dims), in_b = i - (shape->dims - b->dims);
        int64_t m = in_a >= 0 ? a->size[in_a] : 1, n = in_b >= 0 ? b->size[in_b] : 1;
        if (i < shape->dims - 2 && m != n && m != 1 && n != 1) {
            return false;
        }
        shape->size[i] = m == 1 ? n : m;
    }
    shape->size[shape->dims - 2] = a->size[a->dims - 2];
    shape->size[shape->dims - 1] = b->size[b->dims - 1];
    return true;
}

struct tensor *op_bmm(struct engine *engine, struct tensor *a, struct tensor *b)
{
    char left[128], right[128];
    struct shape shape;
    if (!a || !b) {
        return NULL;
    }
    if (!product_shape(&a->shape, &b->shape, &shape)) {
        engine_misuse(engine, "bmm takes [..., n, k] and [..., k, m]; the inputs are %s and %s",
                      shape_text(&a->shape, left), shape_text(&b->shape, right));
        return NULL;
    }
    struct tensor *y = autocast_argument(engine, "matmul", b);
    struct tensor *x = autocast_argument(engine, "matmul", a);
    struct tensor *result = matmul(engine, x, y, &shape);
    tensor_drop(engine, x);
    tensor_drop(engine, y);
    return result;
}

/* --- by the transpose of a weight --------------------------------------------------------- */

/* Like product_backward, but the weight was read transposed, so its gradient is a view. */
static void weight_product_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                    struct tensor **results)
{
    product_backward(engine, node, grads, results);
    if (results[RIGHT]) {
        results[RIGHT]->is_view = true;
    }
}

struct tensor *op_product(struct engine *engine, struct tensor *input, struct tensor *weight)
{
    char text[128];
    if (!input || !weight) {
        return NULL;
    }
    struct shape shape = input->shape;
    if (shape.dims != 2 || shape.size[1] != weight->shape.size[1]) {
        engine_misuse(engine, "[batch, %lld] expected, the input is %s",
                      (long long)weight->shape.size[1], shape_text(&shape, text));
        return NULL;
    }
    shape.size[1] = weight->shape.size[0];
    return product(engine, "MmBackward", weight_product_backward, input, weight, &shape);
}
