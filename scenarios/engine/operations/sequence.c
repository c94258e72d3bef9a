/* sequence.c - embeddings, and padded batches of sequences packed for cuDNN and back. */
#include "gmd_layout.h"
#include "gmd_min.h"
#include "gmd_operations.h"

/* --- Embedding --------------------------------------------------------------------------- */

enum { INDICES, TABLE }; /* recipe.shape */

#define SMALL_INDICES  3072 /* up to so many are processed in order by one kernel */
#define ROWS_PER_BLOCK 10

/* Sorting pairs of 64-bit keys and values takes a copy of both and histograms; prefix sums take a
 * small fixed amount. */
#define SORT_FIXED 17919
#define SCAN_FIXED 1279

/* Many indices are sorted, so that the rows of one entry are summed by one block; long runs are
 * summed in parts. Facts: aten/src/ATen/native/cuda/Embedding.cu and EmbeddingBackwardKernel.cu. */
static struct tensor *sorted_gradient(struct engine *engine, const struct node *node,
                                      uint64_t count)
{
    const struct shape *table = &node->recipe.shape[TABLE];
    uint64_t entries = (uint64_t)table->size[0], column = (uint64_t)table->size[1];
    uint64_t list = count * sizeof(int64_t);
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
    struct storage *partials = storage_new(engine, list);
    struct storage *partial_offsets = storage_new(engine, list);
    storage_scratch(engine, SCAN_FIXED);
    struct storage *partial_count = storage_new(engine, 8);
    uint64_t parts = count / ROWS_PER_BLOCK + gmd_min(count, entries);
    struct storage *part_offsets = storage_new(engine, parts * sizeof(int64_t));
    storage_scratch(engine, parts * column * 4); /* summed in 32 bits */
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
