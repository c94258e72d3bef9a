/* sorting.c - running sums, sorted elements, the largest ones. Facts: derivatives.yaml,
 * FunctionsManual.cpp, Sort.cu, Sorting.cu and ScanKernels.cpp of PyTorch 2.11. */
#include "gmd_autocast.h"
#include "gmd_layout.h"
#include "gmd_more_operations.h"
#include "reduce.h"

/* Zeros, into which the gradient is scattered. */
static void scattered_backward(struct engine *engine, struct node *node, struct tensor **grads,
                               struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

/* --- running sums ------------------------------------------------------------------------- */

/* Turned round, summed, and turned round again. */
static void cumsum_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    struct tensor *grad = op_cast(engine, grads[0], node->recipe.dtype);
    struct tensor *turned = tensor_like(engine, grad), *sums = tensor_like(engine, grad);
    results[0] = tensor_like(engine, grad);
    tensor_drop(engine, sums);
    tensor_drop(engine, turned);
    tensor_drop(engine, grad);
}

/* The input is converted to the result's type for the call. */
struct tensor *op_cumsum(struct engine *engine, struct tensor *a, int dimension)
{
    (void)dimension;
    if (!a) {
        return NULL;
    }
    enum dtype dtype =
        dtype_is_floating(a->dtype) ? autocast_result(engine, "cumsum", a->dtype) : DTYPE_INT64;
    struct tensor *result = tensor_new(engine, &a->shape, dtype);
    struct tensor *converted = a->dtype == dtype ? NULL : tensor_new(engine, &a->shape, dtype);
    struct tensor *rows = tensor_expect(engine, converted ? converted : a, FORMAT_ROWS);
    tensor_drop(engine, rows);
    tensor_drop(engine, converted);
    node_drop(engine, node_over(engine, "CumsumBackward", cumsum_backward, a, result));
    return result;
}

/* --- sorted ------------------------------------------------------------------------------- */

#define SORTED_IN_PLACE                                                                            \
    4096                 /* up to so many along the dimension one kernel sorts where they are      \
                          */
#define SORT_FIXED 17919 /* of the radix sort, as in sequence.c */

/* The radix sort of more takes both lists once more, and numbers of the segments. */
static void sort_scratch(struct engine *engine, const struct tensor *values, int dimension)
{
    uint64_t count = shape_count(&values->shape), bytes = dtype_bytes(values->dtype);
    if (values->shape.dims == 0 || values->shape.size[dimension] <= SORTED_IN_PLACE) {
        return;
    }
    struct storage *numbers = storage_new(engine, count * sizeof(int64_t));
    storage_scratch(engine, count * (bytes + sizeof(int64_t)) + SORT_FIXED);
    storage_drop(engine, numbers);
}

struct tensor *op_sort(struct engine *engine, struct tensor *a, int dimension,
                       struct tensor **indices)
{
    if (!a) {
        return NULL;
    }
    struct tensor *values = tensor_like_it_lies(engine, a);
    *indices = tensor_elementwise(engine, &a->shape, DTYPE_INT64, &a, 1);
    sort_scratch(engine, values, dimension);
    node_over_saving(engine, "SortBackward", scattered_backward, a, values, *indices);
    return values;
}

struct tensor *op_topk(struct engine *engine, struct tensor *a, int64_t k, int dimension,
                       struct tensor **indices)
{
    if (!a) {
        return NULL;
    }
    if (k > a->shape.size[dimension]) {
        engine_misuse(engine, "topk: %lld of %lld", (long long)k,
                      (long long)a->shape.size[dimension]);
        return NULL;
    }
    struct shape shape = a->shape;
    shape.size[dimension] = k;
    struct tensor *values = tensor_new(engine, &shape, a->dtype);
    *indices = tensor_new(engine, &shape, DTYPE_INT64);
    tensor_drop(engine, tensor_expect(engine, a, FORMAT_ROWS));
    node_over_saving(engine, "TopkBackward", scattered_backward, a, values, *indices);
    return values;
}

struct tensor *op_argmax(struct engine *engine, struct tensor *a, int dimension, bool keepdim)
{
    if (!a || shape_count(&a->shape) == 0) {
        if (a) {
            engine_misuse(engine, "argmax: there is no largest of no elements");
        }
        return NULL;
    }
    struct shape kept = a->shape;
    kept.size[dimension] = 1;
    struct tensor *result = tensor_new(engine, &kept, DTYPE_INT64);
    reduce_scratch_to(engine, &a->shape, &kept, 2 * sizeof(int64_t)); /* values with indices */
    struct tensor *flat =
        keepdim ? tensor_keep(result) : op_squeeze(engine, result, 1u << dimension);
    tensor_drop(engine, result);
    return flat;
}
