/* sequence.c - embeddings, and padded batches of sequences packed for cuDNN and back. */
#include "gmd_layout.h"
#include "gmd_min.h"
#include "gmd_operations.h"
#include "gpu.h"

/* --- Embedding --------------------------------------------------------------------------- */

enum { INDICES, TABLE }; /* recipe.shape */

#define SMALL_INDICES  3072 /* up to so many are processed in order by one kernel */
#define ROWS_PER_BLOCK 10

/* Sorting pairs of 64-bit keys and values takes a copy of both and histograms; prefix sums take a
 * small fixed amount. */
#define SORT_FIXED 17919
#define SCAN_FIXED 1279

#define MOST_THREADS  1024 /* of a block */
#define ENOUGH_BLOCKS ((uint64_t)4 * GPU_MULTIPROCESSORS)

/* The rows of one entry are a segment, which is summed in parts. */
struct segments {
    uint64_t most, parts, column;
};

/* Few segments of many parts: each part is added to the gradient at once. */
static bool are_added_at_once(const struct segments *segments)
{
    uint64_t threads = (segments->column + GPU_WARP - 1) / GPU_WARP * GPU_WARP;
    uint64_t block = gmd_min(threads, MOST_THREADS);
    uint64_t blocks = (segments->most * threads + block - 1) / block;
    return blocks < ENOUGH_BLOCKS && segments->parts > 4 * blocks;
}

/* What the parts take until they are in the gradient: a place for each, or the segment of each and,
 * for 16 bits, a gradient of 32. */
static void sum_parts(struct engine *engine, const struct segments *segments,
                      const struct tensor *gradient)
{
    uint64_t bytes = gmd_max(dtype_bytes(gradient->dtype), 4); /* of a number while it is summed */
    if (!are_added_at_once(segments)) {
        storage_scratch(engine, segments->parts * segments->column * bytes);
        return;
    }
    struct storage *mapping = storage_new(engine, segments->parts * sizeof(int64_t));
    if (bytes > dtype_bytes(gradient->dtype)) {
        storage_scratch(engine, shape_count(&gradient->shape) * bytes);
    }
    storage_drop(engine, mapping);
}

/* Many indices are sorted, so that the rows of one entry lie together. Facts: embedding_dense_
 * backward_cuda() in Embedding.cu and EmbeddingBackwardKernel.cu of PyTorch 2.11. */
static struct tensor *sorted_gradient(struct engine *engine, const struct node *node,
                                      uint64_t count)
{
    const struct shape *table = &node->recipe.shape[TABLE];
    uint64_t most = gmd_min(count, (uint64_t)table->size[0]);
    struct segments runs = {most, count / ROWS_PER_BLOCK + most, (uint64_t)table->size[1]};
    uint64_t list = count * sizeof(int64_t), short_list = most * sizeof(int64_t);
    struct storage *indices = node->recipe.number[0] ? storage_new(engine, list) : NULL;
    struct storage *sorted = storage_new(engine, list);
    struct storage *original = storage_new(engine, list);
    struct storage *range = storage_new(engine, list);
    storage_scratch(engine, 2 * list + SORT_FIXED);
    storage_drop(engine, range);
    struct tensor *result = tensor_new(engine, table, node->recipe.dtype);
    struct storage *offsets = storage_new(engine, list);
    struct storage *segments = storage_new(engine, 8);
    struct storage *unique = storage_new(engine, list);
    storage_scratch(engine, SCAN_FIXED);
    storage_drop(engine, unique);
    struct storage *partials = storage_new(engine, short_list);
    struct storage *partial_offsets = storage_new(engine, short_list);
    storage_scratch(engine, SCAN_FIXED);
    struct storage *partial_count = storage_new(engine, 8);
    struct storage *part_offsets = storage_new(engine, runs.parts * sizeof(int64_t));
    sum_parts(engine, &runs, result);
    struct storage *all[] = {part_offsets, partial_count, partial_offsets, partials, segments,
                             offsets,      original,      sorted,          indices};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        storage_drop(engine, all[i]);
    }
    return result;
}

/* Dense: as large as the whole table. */
static void embedding_backward(struct engine *engine, struct node *node, struct tensor **grads,
                               struct tensor **results)
{
    if (!node_wants(node, 0)) {
        return;
    }
    uint64_t count = shape_count(&node->recipe.shape[INDICES]);
    struct tensor *rows = grads[0]->transposed ? tensor_like(engine, grads[0]) : NULL;
    if (count > SMALL_INDICES) {
        results[0] = sorted_gradient(engine, node, count);
    } else {
        results[0] = tensor_new(engine, &node->recipe.shape[TABLE], node->recipe.dtype);
    }
    tensor_drop(engine, rows);
}

struct tensor *op_embedding(struct engine *engine, struct tensor *indices, struct tensor *weight)
{
    if (!indices || !weight) {
        return NULL;
    }
    if (indices->shape.dims >= SHAPE_MAX_DIMS) {
        engine_misuse(engine, "Embedding takes at most %d dimensions", SHAPE_MAX_DIMS - 1);
        return NULL;
    }
    if (indices->dtype != DTYPE_INT64 && indices->dtype != DTYPE_INT32) {
        engine_misuse(engine, "Embedding takes numbers of entries, int64 or int32; the input is %s",
                      dtype_name(indices->dtype));
        return NULL;
    }
    struct shape shape = indices->shape;
    shape.size[shape.dims++] = weight->shape.size[1];
    struct tensor *in_order = indices->transposed ? tensor_like(engine, indices) : NULL;
    struct tensor *result = tensor_new(engine, &shape, weight->dtype);
    tensor_drop(engine, in_order);
    if (tensor_tracked(engine, weight)) {
        struct node *node = node_new(engine, "EmbeddingBackward", embedding_backward, 1);
        node_connect(engine, node, 0, weight);
        node->recipe = (struct recipe){.shape = {indices->shape, weight->shape},
                                       .dtype = weight->dtype,
                                       .number = {indices->transposed}};
        node_save(node, indices);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    return result;
}

/* --- packed sequences -------------------------------------------------------------------- */

/* The gradient has the length first, the tensor had the batch first. */
static void pack_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    tensor_lay_swapped(results[0]);
}

struct tensor *op_pack_sequences(struct engine *engine, struct tensor *padded)
{
    if (!padded || padded->shape.dims != 3) {
        return NULL;
    }
    struct shape shape = padded->shape;
    shape.size[0] = padded->shape.size[1];
    shape.size[1] = padded->shape.size[0];
    struct tensor *by_length = tensor_new(engine, &shape, padded->dtype);
    struct tensor *packed = tensor_new(engine, &shape, padded->dtype);
    tensor_drop(engine, by_length);
    node_drop(engine,
              node_over(engine, "PackPaddedSequenceBackward", pack_backward, padded, packed));
    return packed;
}

/* The packed rows were copied in place into slices of the padded tensor: the backward pass copies
 * its gradient, takes out the slice's gradient and clears the slice. */
static void pad_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    struct tensor *copy = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    struct tensor *slice = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    tensor_drop(engine, copy);
    tensor_drop(engine, grads[0]);
    grads[0] = NULL;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    tensor_drop(engine, slice);
}

struct tensor *op_pad_sequences(struct engine *engine, struct tensor *packed)
{
    if (!packed || packed->shape.dims != 3) {
        return NULL;
    }
    struct tensor *padded = tensor_new(engine, &packed->shape, packed->dtype);
    node_drop(engine, node_over(engine, "CopySlices", pad_backward, packed, padded));
    struct tensor *result = op_transpose(engine, padded, 0, 1);
    tensor_drop(engine, padded);
    return result;
}
