/* attention.c - attention of a sequence to itself, from the packed projection to the merged
 * heads. Three nodes, as torch records them: the copy that puts queries, keys and values one after
 * the other, the attention kernel, and the copy that merges the heads (a view on the way back). In
 * 32 bits the kernel is the memory-efficient one, in 16 bits cuDNN's, which needs no copy to merge.
 */
#include "gmd_operations.h"

enum { HEADS }; /* of recipe.number */

static gmd_tensor *shaped(gmd_engine *engine, const gmd_node *node, int index)
{
    return gmd_tensor_new(engine, &node->recipe.shape[index], node->recipe.dtype);
}

static void replace(gmd_engine *engine, gmd_tensor **tensor, gmd_tensor *by)
{
    gmd_tensor_drop(engine, *tensor);
    *tensor = by;
}

/* The three gradients are copied to their layout, written each into a zeroed copy of the whole, and
 * the three wholes are summed: what recorded backward passes do between the attention kernel and
 * the gradient of the projection. */
static void unpack_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                            gmd_tensor **results)
{
    if (!grads[0] || !grads[1] || !grads[2]) {
        return;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 2; i >= 0; i--) {
            replace(engine, &grads[i], shaped(engine, node, 1));
        }
    }
    gmd_tensor *sum = shaped(engine, node, 0);
    replace(engine, &grads[2], NULL);
    for (int i = 1; i >= 0; i--) {
        gmd_tensor *part = shaped(engine, node, 0);
        replace(engine, &grads[i], NULL);
        gmd_tensor_drop(engine, part);
    }
    results[0] = shaped(engine, node, 0);
    gmd_tensor_drop(engine, sum);
}

/* cuDNN's gradients are written one after the other into zeroed copies of the whole, which are
 * summed in place, and the sum is copied to the projection's layout. */
static void cudnn_unpack_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                                  gmd_tensor **results)
{
    gmd_tensor *sum = NULL;
    for (int i = 2; i >= 0; i--) {
        gmd_tensor *whole = shaped(engine, node, 0);
        replace(engine, &grads[i], NULL);
        if (sum) {
            gmd_tensor_drop(engine, whole);
        } else {
            sum = whole;
        }
    }
    results[0] = shaped(engine, node, 0);
    gmd_tensor_drop(engine, sum);
}

/* A sum in 32 bits for the queries' gradient, and one number for each row. */
static void cudnn_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                           gmd_tensor **results)
{
    const gmd_recipe *recipe = &node->recipe;
    uint64_t rows = (uint64_t)(recipe->shape[1].size[0] * recipe->shape[1].size[1]);
    (void)grads;
    for (int i = 0; i < 3; i++) {
        results[i] = shaped(engine, node, 1);
    }
    gmd_scratch(engine,
                rows * 4 * ((uint64_t)recipe->shape[1].size[2] + recipe->number[HEADS]) + 256);
}

static uint64_t kernel_workspace(const gmd_recipe *recipe)
{
    uint64_t length = (uint64_t)recipe->shape[1].size[0], heads = recipe->number[HEADS];
    uint64_t batch = (uint64_t)recipe->shape[1].size[1];
    uint64_t depth = (uint64_t)recipe->shape[1].size[2] / heads;
    return batch * heads * ((length + 63) / 64 * 64 * depth * 4 + (length + 63) / 64 * 16);
}

static void efficient_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                               gmd_tensor **results)
{
    const gmd_recipe *recipe = &node->recipe;
    (void)grads;
    gmd_shape rows = {
        3, {recipe->shape[1].size[0], recipe->shape[1].size[1], (int64_t)recipe->number[HEADS]}};
    for (int i = 0; i < 3; i++) {
        results[i] = shaped(engine, node, 1);
    }
    gmd_tensor *product = shaped(engine, node, 1);
    gmd_tensor *sum = gmd_tensor_new(engine, &rows, GMD_FLOAT32);
    gmd_tensor *delta = gmd_tensor_new(engine, &rows, GMD_FLOAT32);
    gmd_tensor_drop(engine, sum);
    gmd_tensor_drop(engine, product);
    gmd_storage *workspace = gmd_storage_new(engine, kernel_workspace(recipe));
    gmd_tensor_drop(engine, delta);
    gmd_storage_drop(engine, workspace);
}

/* Of merged heads the gradient has to be copied to the kernel's layout. */
static void merged_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                            gmd_tensor **results)
{
    gmd_tensor *grad = shaped(engine, node, 1);
    efficient_backward(engine, node, grads, results);
    gmd_tensor_drop(engine, grad);
}

static void merge_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                           gmd_tensor **results)
{
    (void)engine;
    (void)node;
    results[0] = gmd_tensor_keep(grads[0]);
}

static gmd_node *attention_node(gmd_engine *engine, const char *name, gmd_backward backward,
                                uint32_t edges, const gmd_shape *whole, const gmd_shape *part,
                                int64_t heads)
{
    gmd_node *node = gmd_node_new(engine, name, backward, edges);
    node->recipe.shape[0] = *whole;
    node->recipe.shape[1] = *part;
    node->recipe.number[HEADS] = (uint64_t)heads;
    return node;
}

static void connect(gmd_engine *engine, gmd_node *unpack, gmd_node *attention, gmd_tensor *qkv,
                    gmd_tensor *weights, gmd_tensor *heads_out, gmd_tensor *merged)
{
    for (uint32_t i = 0; i < 3; i++) {
        unpack->refs++;
        attention->edges[i] = (gmd_edge){unpack, i};
    }
    gmd_node_save(attention, qkv);
    gmd_node_save(attention, weights);
    gmd_node_save(attention, heads_out);
    gmd_node_result(attention, 0, heads_out);
    gmd_node *merge = gmd_node_new(engine, "CloneBackward", merge_backward, 1);
    gmd_node_connect(engine, merge, 0, heads_out);
    gmd_node_result(merge, 0, merged);
    gmd_node_drop(engine, merge);
}

static bool fits(gmd_engine *engine, const gmd_tensor *packed, int64_t heads)
{
    char text[128];
    if (packed->shape.dims == 3 && packed->shape.size[2] % (3 * heads) == 0) {
        return true;
    }
    gmd_misuse(engine,
               "attention with %lld heads takes [length, batch, 3 * features], features a "
               "multiple of the heads; the input is %s",
               (long long)heads, gmd_shape_text(&packed->shape, text));
    return false;
}

static gmd_tensor *cudnn_attention(gmd_engine *engine, gmd_tensor *qkv, gmd_node *unpack,
                                   const gmd_shape *part, int64_t heads)
{
    static const gmd_shape scalar = {0, {0}};
    gmd_shape rows = {3, {part->size[0], part->size[1], heads}};
    gmd_tensor *seed = gmd_tensor_new(engine, &scalar, GMD_INT64);
    gmd_tensor *offset = gmd_tensor_new(engine, &scalar, GMD_INT64);
    gmd_tensor *result = gmd_tensor_new(engine, part, qkv->dtype);
    gmd_tensor *log_sums = gmd_tensor_new(engine, &rows, GMD_FLOAT32);
    gmd_scratch(engine, 256);
    if (unpack) {
        gmd_node *node = attention_node(engine, "CudnnAttentionBackward", cudnn_backward, 3,
                                        &qkv->shape, part, heads);
        node->recipe.dtype = qkv->dtype;
        for (uint32_t i = 0; i < 3; i++) {
            unpack->refs++;
            node->edges[i] = (gmd_edge){unpack, i};
        }
        gmd_tensor *const saved[] = {qkv, log_sums, result, offset, seed};
        for (size_t i = 0; i < sizeof saved / sizeof saved[0]; i++) {
            gmd_node_save(node, saved[i]);
        }
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
    gmd_tensor_drop(engine, seed);
    gmd_tensor_drop(engine, offset);
    gmd_tensor_drop(engine, log_sums);
    return result;
}

static gmd_tensor *efficient_attention(gmd_engine *engine, gmd_tensor *qkv, gmd_node *unpack,
                                       const gmd_shape *part, int64_t heads)
{
    gmd_tensor *heads_out = gmd_tensor_new(engine, part, qkv->dtype);
    gmd_shape sums = {3, {(part->size[0] + 31) / 32 * 32, part->size[1], heads}};
    gmd_tensor *log_sums = gmd_tensor_new(engine, &sums, GMD_FLOAT32);
    if (!unpack) {
        gmd_tensor_drop(engine, log_sums);
        log_sums = NULL;
    }
    gmd_tensor *merged = gmd_tensor_new(engine, part, qkv->dtype);
    if (unpack) {
        gmd_node *attention = attention_node(engine, "EfficientAttentionBackward", merged_backward,
                                             3, &qkv->shape, part, heads);
        attention->recipe.dtype = qkv->dtype;
        connect(engine, unpack, attention, qkv, log_sums, heads_out, merged);
        gmd_node_drop(engine, attention);
    }
    gmd_tensor_drop(engine, log_sums);
    gmd_tensor_drop(engine, heads_out);
    return merged;
}

gmd_tensor *gmd_op_self_attention(gmd_engine *engine, gmd_tensor *packed, int64_t heads)
{
    if (!packed || !fits(engine, packed, heads)) {
        gmd_tensor_drop(engine, packed);
        return NULL;
    }
    gmd_shape whole = packed->shape, part = packed->shape;
    part.size[2] /= 3;
    bool narrow = gmd_dtype_bytes(packed->dtype) == 2;
    gmd_node *unpack = NULL;
    if (gmd_tensor_tracked(engine, packed)) {
        unpack = attention_node(engine, "UnpackBackward",
                                narrow ? cudnn_unpack_backward : unpack_backward, 1, &whole, &part,
                                heads);
        gmd_node_connect(engine, unpack, 0, packed);
        unpack->recipe.dtype = packed->dtype;
    }
    gmd_tensor *qkv = gmd_tensor_new(engine, &whole, packed->dtype);
    gmd_tensor_drop(engine, packed);
    gmd_tensor *result = narrow ? cudnn_attention(engine, qkv, unpack, &part, heads)
                                : efficient_attention(engine, qkv, unpack, &part, heads);
    gmd_node_drop(engine, unpack);
    gmd_tensor_drop(engine, qkv);
    return result;
}

/* --- queries, keys and values as views of the projection --------------------------------- */

static void split_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                           gmd_tensor **results)
{
    results[0] = shaped(engine, node, 0);
    for (int i = 0; i < 3; i++) {
        replace(engine, &grads[i], NULL);
    }
}

/* The kernel reads the views and writes what the next layer reads: nothing is copied. */
static gmd_tensor *efficient_in_place(gmd_engine *engine, gmd_tensor *packed, gmd_node *split,
                                      const gmd_shape *part, int64_t heads)
{
    gmd_tensor *result = gmd_tensor_new(engine, part, packed->dtype);
    gmd_shape sums = {3, {(part->size[0] + 31) / 32 * 32, part->size[1], heads}};
    gmd_tensor *log_sums = gmd_tensor_new(engine, &sums, GMD_FLOAT32);
    if (split) {
        gmd_node *node = attention_node(engine, "EfficientAttentionBackward", efficient_backward, 3,
                                        &packed->shape, part, heads);
        node->recipe.dtype = packed->dtype;
        for (uint32_t i = 0; i < 3; i++) {
            split->refs++;
            node->edges[i] = (gmd_edge){split, i};
        }
        gmd_node_save(node, packed);
        gmd_node_save(node, log_sums);
        gmd_node_save(node, result);
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
    gmd_tensor_drop(engine, log_sums);
    return result;
}

gmd_tensor *gmd_op_split_attention(gmd_engine *engine, gmd_tensor *packed, int64_t heads)
{
    if (!packed || !fits(engine, packed, heads)) {
        return NULL;
    }
    gmd_shape given = packed->shape;
    gmd_shape part = {3, {given.size[1], given.size[0], given.size[2] / 3}}; /* length first */
    gmd_node *split = NULL;
    if (gmd_tensor_tracked(engine, packed)) {
        split = attention_node(engine, "SplitBackward", split_backward, 1, &given, &part, heads);
        gmd_node_connect(engine, split, 0, packed);
        split->recipe.dtype = packed->dtype;
    }
    gmd_tensor *result = gmd_dtype_bytes(packed->dtype) == 2
                             ? cudnn_attention(engine, packed, split, &part, heads)
                             : efficient_in_place(engine, packed, split, &part, heads);
    gmd_node_drop(engine, split);
    result->shape = (gmd_shape){3, {given.size[0], given.size[1], part.size[2]}};
    return result;
}
