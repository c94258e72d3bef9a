/* sorting.c - running sums, sorted elements, the largest ones. Facts: derivatives.yaml,
 * FunctionsManual.cpp, Sort.cu, Sorting.cu and ScanKernels.cpp of PyTorch 2.11. */
#include "gmd_autocast.h"
#include "gmd_layout.h"
#include "gmd_min.h"
#include "gmd_more_operations.h"
#include "gpu.h"
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

/* Up to so many along the dimension one kernel sorts where they are, with a list of their numbers.
 */
#define SORTED_IN_PLACE 4096
/* Fewer segments than this are sorted at once, with the number of each element's segment. */
#define SORTED_AT_ONCE 128
#define SORTED_ALONE   1000000 /* segments of so many elements are sorted one after the other */
#define INDEX          ((uint64_t)sizeof(int64_t))

/* Parts of cub's temporary memory begin at multiples of this; the whole has one less in addition.
 */
static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Elements of a block of cub's radix sort on an H200, with values of 8 bytes: measured. */
static uint64_t sorted_by_a_block(uint64_t key)
{
    return key == 8 ? 4608 : key == 4 ? 5376 : 5632;
}

/* cub::DeviceRadixSort::SortPairs: other lists of keys and values, counts of 256 digits for each
 * byte of the keys, and what the blocks tell each other. */
static uint64_t radix_sort_bytes(uint64_t count, uint64_t key)
{
    uint64_t block = sorted_by_a_block(key), blocks = (count + block - 1) / block;
    return aligned(count * key) + aligned(count * INDEX) + key * 256 * 8 + blocks * 256 * 4 + 256 +
           255;
}

/* Indices and numbers of segments, before and after, and a list of the keys. */
static void sort_at_once(struct engine *engine, uint64_t count, uint64_t key)
{
    struct storage *numbers[] = {storage_new(engine, count * INDEX),
                                 storage_new(engine, count * INDEX),
                                 storage_new(engine, count * key)};
    storage_scratch(engine, radix_sort_bytes(count, key));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        storage_drop(engine, numbers[i]);
    }
}

static void sort_scratch(struct engine *engine, const struct tensor *values, int dimension)
{
    uint64_t count = shape_count(&values->shape), key = dtype_bytes(values->dtype);
    uint64_t length = values->shape.dims ? (uint64_t)values->shape.size[dimension] : 1;
    uint64_t segments = length ? count / length : 0;
    if (count == 0 || values->shape.dims == 0) {
        return;
    }
    if (length <= SORTED_IN_PLACE) {
        storage_scratch(engine, length * INDEX);
    } else if (segments == 1 || length >= SORTED_ALONE) {
        struct storage *numbers = storage_new(engine, length * INDEX);
        for (uint64_t i = 0; i < segments && !engine_failed(engine); i++) {
            storage_scratch(engine, radix_sort_bytes(length, key));
        }
        storage_drop(engine, numbers);
    } else if (segments < SORTED_AT_ONCE) {
        sort_at_once(engine, count, key);
    } else {
        struct storage *numbers = storage_new(engine, count * INDEX);
        storage_scratch(engine, aligned(count * key) + aligned(count * INDEX) + 255);
        storage_drop(engine, numbers);
    }
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

/* --- the largest of them ------------------------------------------------------------------ */

/* Several blocks to a slice: from how many elements on, by how many slices there are at least. */
static bool shares_slices(uint64_t slices, uint64_t length)
{
    static const uint64_t from[][2] = {{4001, 400}, {800, 800},  {200, 3000}, {81, 5000},
                                       {41, 8000},  {21, 10000}, {0, 20000}};
    size_t row = 0;
    while (slices < from[row][0]) {
        row++;
    }
    return length >= from[row][1];
}

/* Counts of 256 digits for each block and slice, what was found of each slice, and temporary memory
 * of a sum by slice, as measured. */
static void topk_scratch(struct engine *engine, const struct tensor *a, int dimension)
{
    enum { THREADS = 256, BLOCKS = 6, DIGITS = 256, SUM_BYTES = 1279 };
    uint64_t count = shape_count(&a->shape), bytes = dtype_bytes(a->dtype);
    uint64_t length = a->shape.dims ? (uint64_t)a->shape.size[dimension] : 1;
    uint64_t slices = length ? count / length : 0, threads = GPU_MULTIPROCESSORS * BLOCKS * THREADS;
    if (count == 0 || !shares_slices(slices, length)) {
        return;
    }
    uint64_t each = gmd_min(gmd_max((count + threads - 1) / threads, 4), 64) * THREADS;
    uint64_t blocks = slices * ((length + each - 1) / each);
    uint64_t found = bytes + 2 * gmd_max(bytes, 4) + 8;
    storage_scratch(engine, slices * (found + DIGITS * 4) + blocks * (DIGITS * 2 + 8) + SUM_BYTES);
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
    struct tensor *rows = tensor_expect(engine, a, FORMAT_ROWS);
    topk_scratch(engine, a, dimension);
    tensor_drop(engine, rows);
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
