/* attention.c - attention of a sequence to itself, from the packed projection to the merged
 * heads. Three nodes, as torch records them: the copy that puts queries, keys and values one after
 * the other, the attention kernel, and the copy that merges the heads (a view on the way back). In
 * 32 bits the kernel is the memory-efficient one, in 16 bits cuDNN's, which needs no copy to merge.
 */
#include "gmd_operations.h"

enum { HEADS }; /* of recipe.number */

static struct tensor *shaped(struct engine *engine, const struct node *node, int index)
{
    return tensor_new(engine, &node->recipe.shape[index], node->recipe.dtype);
}

static void replace(struct engine *engine, struct tensor **tensor, struct tensor *by)
{
    tensor_drop(engine, *tensor);
    *tensor = by;
}

/* The three gradients are copied to their layout, written each into a zeroed copy of the whole, and
 * the three wholes are summed: what recorded backward passes do between the attention kernel and
 * the gradient of the projection. */
static void unpack_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    if (!grads[0] || !grads[1] || !grads[2]) {
        return;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 2; i >= 0; i--) {
            replace(engine, &grads[i], shaped(engine, node, 1));
        }
    }
    struct tensor *sum = shaped(engine, node, 0);
    replace(engine, &grads[2], NULL);
    for (int i = 1; i >= 0; i--) {
        struct tensor *part = shaped(engine, node, 0);
        replace(engine, &grads[i], NULL);
        tensor_drop(engine, part);
    }
    results[0] = shaped(engine, node, 0);
    tensor_drop(engine, sum);
}

/* cuDNN's gradients are written one after the other into zeroed copies of the whole, which are
 * summed in place, and the sum is copied to the projection's layout. */
static void cudnn_unpack_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                  struct tensor **results)
{
    struct tensor *sum = NULL;
    for (int i = 2; i >= 0; i--) {
        struct tensor *whole = shaped(engine, node, 0);
        replace(engine, &grads[i], NULL);
        if (sum) {
            tensor_drop(engine, whole);
        } else {
            sum = whole;
        }
    }
    results[0] = shaped(engine, node, 0);
    tensor_drop(engine, sum);
}

/* A sum in 32 bits for the queries' gradient, and one number for each row. */
static void cudnn_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    const struct recipe *recipe = &node->recipe;
    uint64_t rows = (uint64_t)(recipe->shape[1].size[0] * recipe->shape[1].size[1]);
    (void)grads;
    for (int i = 0; i < 3; i++) {
        results[i] = shaped(engine, node, 1);
    }
    storage_scratch(engine,
                    rows * 4 * ((uint64_t)recipe->shape[1].size[2] + recipe->number[HEADS]) + 256);
}

static uint64_t kernel_workspace(const struct recipe *recipe)
{
    uint64_t length = (uint64_t)recipe->shape[1].size[0], heads = recipe->number[HEADS];
    uint64_t batch = (uint64_t)recipe->shape[1].size[1];
    uint64_t depth = (uint64_t)recipe->shape[1].size[2] / heads;
    return batch * heads * ((length + 63) / 64 * 64 * depth * 4 + (length + 63) / 64 * 16);
}

static void efficient_backward(struct engine *engine, struct node *node, struct tensor **grads,
                               struct tensor **results)
{
    const struct recipe *recipe = &node->recipe;
    (void)grads;
    struct shape rows = {
        3, {recipe->shape[1].size[0], recipe->shape[1].size[1], (int64_t)recipe->number[HEADS]}};
    for (int i = 0; i < 3; i++) {
        results[i] = shaped(engine, node, 1);
    }
    struct tensor *product = shaped(engine, node, 1);
    struct tensor *sum = tensor_new(engine, &rows, DTYPE_FLOAT32);
    struct tensor *delta = tensor_new(engine, &rows, DTYPE_FLOAT32);
    tensor_drop(engine, sum);
    tensor_drop(engine, product);
    struct storage *workspace = storage_new(engine, kernel_workspace(recipe));
    tensor_drop(engine, delta);
    storage_drop(engine, workspace);
}

/* The gradient of merged heads has to be copied to the kernel's layout. */
static void merged_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    struct tensor *grad = shaped(engine, node, 1);
    efficient_backward(engine, node, grads, results);
    tensor_drop(engine, grad);
}

static void merge_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    (void)engine;
    (void)node;
    results[0] = tensor_keep(grads[0]);
}

static struct node *attention_node(struct engine *engine, const char *name, backward_fn backward,
                                   uint32_t edges, const struct shape *whole,
                                   const struct shape *part, int64_t heads)
{
    struct node *node = node_new(engine, name, backward, edges);
    node->recipe.shape[0] = *whole;
    node->recipe.shape[1] = *part;
    node->recipe.number[HEADS] = (uint64_t)heads;
    return node;
}

static void connect(struct engine *engine, struct node *unpack, struct node *attention,
                    struct tensor *qkv, struct tensor *weights, struct tensor *heads_out,
                    struct tensor *merged)
{
    for (uint32_t i = 0; i < 3; i++) {
        unpack->refs++;
        attention->edges[i] = (struct edge){unpack, i};
    }
    node_save(attention, qkv);
    node_save(attention, weights);
    node_save(attention, heads_out);
    node_result(attention, 0, heads_out);
    struct node *merge = node_new(engine, "CloneBackward", merge_backward, 1);
    node_connect(engine, merge, 0, heads_out);
    node_result(merge, 0, merged);
    node_drop(engine, merge);
}

static bool fits(struct engine *engine, const struct tensor *packed, int64_t heads)
{
    char text[128];
    if (packed->shape.dims == 3 && packed->shape.size[2] % (3 * heads) == 0) {
        return true;
    }
    engine_misuse(engine,
                  "attention with %lld heads takes [length, batch, 3 * features], features a "
                  "multiple of the heads; the input is %s",
                  (long long)heads, shape_text(&packed->shape, text));
    return false;
}

static struct tensor *cudnn_attention(struct engine *engine, struct tensor *qkv,
                                      struct node *unpack, const struct shape *part, int64_t heads)
{
    static const struct shape scalar = {0, {0}};
    struct shape rows = {3, {part->size[0], part->size[1], heads}};
    struct tensor *seed = tensor_new(engine, &scalar, DTYPE_INT64);
    struct tensor *offset = tensor_new(engine, &scalar, DTYPE_INT64);
    struct tensor *result = tensor_new(engine, part, qkv->dtype);
    struct tensor *log_sums = tensor_new(engine, &rows, DTYPE_FLOAT32);
    storage_scratch(engine, 256);
    if (unpack) {
        struct node *node = attention_node(engine, "CudnnAttentionBackward", cudnn_backward, 3,
                                           &qkv->shape, part, heads);
        node->recipe.dtype = qkv->dtype;
        for (uint32_t i = 0; i < 3; i++) {
            unpack->refs++;
            node->edges[i] = (struct edge){unpack, i};
        }
        struct tensor *const saved[] = {qkv, log_sums, result, offset, seed};
        for (size_t i = 0; i < sizeof saved / sizeof saved[0]; i++) {
            node_save(node, saved[i]);
        }
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    tensor_drop(engine, seed);
    tensor_drop(engine, offset);
    tensor_drop(engine, log_sums);
    return result;
}

static struct tensor *efficient_attention(struct engine *engine, struct tensor *qkv,
                                          struct node *unpack, const struct shape *part,
                                          int64_t heads)
{
    struct tensor *heads_out = tensor_new(engine, part, qkv->dtype);
    struct shape sums = {3, {(part->size[0] + 31) / 32 * 32, part->size[1], heads}};
    struct tensor *log_sums = tensor_new(engine, &sums, DTYPE_FLOAT32);
    if (!unpack) {
        tensor_drop(engine, log_sums);
        log_sums = NULL;
    }
    struct tensor *merged = tensor_new(engine, part, qkv->dtype);
    if (unpack) {
        struct node *attention = attention_node(engine, "EfficientAttentionBackward",
                                                merged_backward, 3, &qkv->shape, part, heads);
        attention->recipe.dtype = qkv->dtype;
        connect(engine, unpack, attention, qkv, log_sums, heads_out, merged);
        node_drop(engine, attention);
    }
    tensor_drop(engine, log_sums);
    tensor_drop(engine, heads_out);
    return merged;
}

struct tensor *op_self_attention(struct engine *engine, struct tensor *packed, int64_t heads)
{
    if (!packed || !fits(engine, packed, heads)) {
        tensor_drop(engine, packed);
        return NULL;
    }
    struct shape whole = packed->shape, part = packed->shape;
    part.size[2] /= 3;
    bool narrow = dtype_bytes(packed->dtype) == 2;
    struct node *unpack = NULL;
    if (tensor_tracked(engine, packed)) {
        unpack = attention_node(engine, "UnpackBackward",
                                narrow ? cudnn_unpack_backward : unpack_backward, 1, &whole, &part,
                                heads);
        node_connect(engine, unpack, 0, packed);
        unpack->recipe.dtype = packed->dtype;
    }
    struct tensor *qkv = tensor_new(engine, &whole, packed->dtype);
    tensor_drop(engine, packed);
    struct tensor *result = narrow ? cudnn_attention(engine, qkv, unpack, &part, heads)
                                   : efficient_attention(engine, qkv, unpack, &part, heads);
    node_drop(engine, unpack);
    tensor_drop(engine, qkv);
    return result;
}

/* --- queries, keys and values as views of the projection --------------------------------- */

static void split_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    results[0] = shaped(engine, node, 0);
    for (int i = 0; i < 3; i++) {
        replace(engine, &grads[i], NULL);
    }
}

/* The kernel reads the views and writes what the next layer reads: nothing is copied. */
static struct tensor *efficient_in_place(struct engine *engine, struct tensor *packed,
                                         struct node *split, const struct shape *part,
                                         int64_t heads)
{
    struct tensor *result = tensor_new(engine, part, packed->dtype);
    struct shape sums = {3, {(part->size[0] + 31) / 32 * 32, part->size[1], heads}};
    struct tensor *log_sums = tensor_new(engine, &sums, DTYPE_FLOAT32);
    if (split) {
        struct node *node = attention_node(engine, "EfficientAttentionBackward", efficient_backward,
                                           3, &packed->shape, part, heads);
        node->recipe.dtype = packed->dtype;
        for (uint32_t i = 0; i < 3; i++) {
            split->refs++;
            node->edges[i] = (struct edge){split, i};
        }
        node_save(node, packed);
        node_save(node, log_sums);
        node_save(node, result);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    tensor_drop(engine, log_sums);
    return result;
}

struct tensor *op_split_attention(struct engine *engine, struct tensor *packed, int64_t heads)
{
    if (!packed || !fits(engine, packed, heads)) {
        return NULL;
    }
    struct shape given = packed->shape;
    struct shape part = {3, {given.size[1], given.size[0], given.size[2] / 3}}; /* length first */
    struct node *split = NULL;
    if (tensor_tracked(engine, packed)) {
        split = attention_node(engine, "SplitBackward", split_backward, 1, &given, &part, heads);
        node_connect(engine, split, 0, packed);
        split->recipe.dtype = packed->dtype;
    }
    struct tensor *result = dtype_bytes(packed->dtype) == 2
                                ? cudnn_attention(engine, packed, split, &part, heads)
                                : efficient_in_place(engine, packed, split, &part, heads);
    node_drop(engine, split);
    result->shape = (struct shape){3, {given.size[0], given.size[1], part.size[2]}};
    return result;
}
