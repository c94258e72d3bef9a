/* sequence.c - embeddings, and padded batches of sequences packed for cuDNN and back. */
#include "gmd_operations.h"

/* --- Embedding --------------------------------------------------------------------------- */

enum { INDICES, TABLE }; /* recipe.shape */

#define SMALL_INDICES  3072 /* up to which one kernel walks over them in order */
#define ROWS_PER_BLOCK 10

/* Sorting pairs of 64-bit keys and values takes room for a copy of both and for histograms; sums
 * over prefixes take a fixed little. */
#define SORT_FIXED 17919
#define SCAN_FIXED 1279

/* Many indices are sorted, so that the rows of one entry are summed by one block; long runs are
 * summed in parts. Facts: aten/src/ATen/native/cuda/Embedding.cu and EmbeddingBackwardKernel.cu. */
static gmd_tensor *sorted_gradient(gmd_engine *engine, const gmd_node *node, uint64_t count)
{
    const gmd_shape *table = &node->recipe.shape[TABLE];
    uint64_t entries = (uint64_t)table->size[0], column = (uint64_t)table->size[1];
    uint64_t list = count * sizeof(int64_t);
    gmd_storage *indices = node->recipe.number[0] ? gmd_storage_new(engine, list) : NULL;
    gmd_storage *sorted = gmd_storage_new(engine, list);
    gmd_storage *original = gmd_storage_new(engine, list);
    gmd_storage *range = gmd_storage_new(engine, list);
    gmd_scratch(engine, 2 * list + SORT_FIXED);
    gmd_storage_drop(engine, range);
    gmd_tensor *result = gmd_tensor_new(engine, table, node->recipe.dtype);
    gmd_storage *offsets = gmd_storage_new(engine, list);
    gmd_storage *segments = gmd_storage_new(engine, 8);
    gmd_storage *unique = gmd_storage_new(engine, list);
    gmd_scratch(engine, SCAN_FIXED);
    gmd_storage_drop(engine, unique);
    gmd_storage *partials = gmd_storage_new(engine, list);
    gmd_storage *partial_offsets = gmd_storage_new(engine, list);
    gmd_scratch(engine, SCAN_FIXED);
    gmd_storage *partial_count = gmd_storage_new(engine, 8);
    uint64_t parts = count / ROWS_PER_BLOCK + (count < entries ? count : entries);
    gmd_storage *part_offsets = gmd_storage_new(engine, parts * sizeof(int64_t));
    gmd_scratch(engine, parts * column * 4); /* summed in 32 bits */
    gmd_storage *all[] = {part_offsets, partial_count, partial_offsets, partials, segments,
                          offsets,      original,      sorted,          indices};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        gmd_storage_drop(engine, all[i]);
    }
    return result;
}

/* Dense: as large as the whole table. */
static void embedding_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                               gmd_tensor **results)
{
    if (!gmd_node_wants(node, 0)) {
        return;
    }
    uint64_t count = gmd_shape_count(&node->recipe.shape[INDICES]);
    gmd_tensor *rows = grads[0]->transposed ? gmd_tensor_like(engine, grads[0]) : NULL;
    if (count > SMALL_INDICES) {
        results[0] = sorted_gradient(engine, node, count);
    } else {
        results[0] = gmd_tensor_new(engine, &node->recipe.shape[TABLE], node->recipe.dtype);
    }
    gmd_tensor_drop(engine, rows);
}

gmd_tensor *gmd_op_embedding(gmd_engine *engine, gmd_tensor *indices, gmd_tensor *weight)
{
    if (!indices || !weight) {
        return NULL;
    }
    if (indices->shape.dims >= GMD_MAX_DIMS) {
        gmd_misuse(engine, "Embedding takes at most %d dimensions", GMD_MAX_DIMS - 1);
        return NULL;
    }
    if (indices->dtype != GMD_INT64 && indices->dtype != GMD_INT32) {
        gmd_misuse(engine, "Embedding takes numbers of entries, int64 or int32; the input is %s",
                   gmd_dtype_name(indices->dtype));
        return NULL;
    }
    gmd_shape shape = indices->shape;
    shape.size[shape.dims++] = weight->shape.size[1];
    gmd_tensor *in_order = indices->transposed ? gmd_tensor_like(engine, indices) : NULL;
    gmd_tensor *result = gmd_tensor_new(engine, &shape, weight->dtype);
    gmd_tensor_drop(engine, in_order);
    if (gmd_tensor_tracked(engine, weight)) {
        gmd_node *node = gmd_node_new(engine, "EmbeddingBackward", embedding_backward, 1);
        gmd_node_connect(engine, node, 0, weight);
        node->recipe = (gmd_recipe){.shape = {indices->shape, weight->shape},
                                    .dtype = weight->dtype,
                                    .number = {indices->transposed}};
        gmd_node_save(node, indices);
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
    return result;
}

/* --- packed sequences -------------------------------------------------------------------- */

/* The gradient lies with the length first, the tensor had the batch first. */
static void pack_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                          gmd_tensor **results)
{
    (void)grads;
    results[0] = gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    results[0]->transposed = true;
}

gmd_tensor *gmd_op_pack_sequences(gmd_engine *engine, gmd_tensor *padded)
{
    if (!padded || padded->shape.dims != 3) {
        return NULL;
    }
    gmd_shape shape = padded->shape;
    shape.size[0] = padded->shape.size[1];
    shape.size[1] = padded->shape.size[0];
    gmd_tensor *by_length = gmd_tensor_new(engine, &shape, padded->dtype);
    gmd_tensor *packed = gmd_tensor_new(engine, &shape, padded->dtype);
    gmd_tensor_drop(engine, by_length);
    gmd_node_drop(
        engine, gmd_node_over(engine, "PackPaddedSequenceBackward", pack_backward, padded, packed));
    return packed;
}

/* The packed rows were copied into slices of the padded tensor, in place: its gradient is copied,
 * the slice's taken out and that one's place cleared. */
static void pad_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                         gmd_tensor **results)
{
    gmd_tensor *copy = gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    gmd_tensor *slice = gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    gmd_tensor_drop(engine, copy);
    gmd_tensor_drop(engine, grads[0]);
    grads[0] = NULL;
    results[0] = gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    gmd_tensor_drop(engine, slice);
}

gmd_tensor *gmd_op_pad_sequences(gmd_engine *engine, gmd_tensor *packed)
{
    if (!packed || packed->shape.dims != 3) {
        return NULL;
    }
    gmd_tensor *padded = gmd_tensor_new(engine, &packed->shape, packed->dtype);
    gmd_node_drop(engine, gmd_node_over(engine, "CopySlices", pad_backward, packed, padded));
    gmd_tensor *result = gmd_op_transpose(engine, padded, 0, 1);
    gmd_tensor_drop(engine, padded);
    return result;
}
