/* attention_kernels.c - what the fused kernels of scaled_dot_product_attention allocate, keep and
 * free. Facts: ATen/native/transformers/cuda/attention.cu, attention_backward.cu,
 * flash_attn/flash_api.cpp and mem_eff_attention/kernel_backward.h, ATen/native/cudnn/MHA.cpp of
 * PyTorch 2.11. */
#include "attention_kernels.h"
#include "gmd_layout.h"
#include "gpu.h"

enum { QUERY, KEY, VALUE, INPUTS }; /* edges, and recipe.shape */
enum { BATCH, HEADS, LENGTH, DEPTH, DIMS };

/* --- in which order the dimensions lie, the outermost first ------------------------------ */

typedef struct order {
    int dimension[DIMS];
} order;

static const order by_heads = {{BATCH, HEADS, LENGTH, DEPTH}};
static const order by_length = {{BATCH, LENGTH, HEADS, DEPTH}};

/* Dimensions of size 1 stay where they are. */
static order order_of(const struct tensor *tensor)
{
    int64_t stride[SHAPE_MAX_DIMS];
    order found = by_heads;
    tensor_layout(tensor, stride);
    for (int i = 1; i < DIMS; i++) {
        for (int k = i; k > 0; k--) {
            int *outer = &found.dimension[k - 1], *inner = &found.dimension[k], moved = *inner;
            if (stride[*outer] >= stride[*inner] || tensor->shape.size[*inner] == 1) {
                break;
            }
            *inner = *outer;
            *outer = moved;
        }
    }
    return found;
}

static void dense_strides(const struct shape *shape, const order *in,
                          int64_t stride[SHAPE_MAX_DIMS])
{
    int64_t step = 1;
    for (int i = DIMS - 1; i >= 0; i--) {
        stride[in->dimension[i]] = step;
        step = shape_product(step, shape->size[in->dimension[i]]);
    }
}

/* Without gaps and in this order. */
static bool lies_in(const struct tensor *tensor, const order *in)
{
    int64_t stride[SHAPE_MAX_DIMS], dense[SHAPE_MAX_DIMS];
    dense_strides(&tensor->shape, in, dense);
    if (!tensor_layout(tensor, stride) || tensor->expanded) {
        return false;
    }
    for (int i = 0; i < DIMS; i++) {
        if (tensor->shape.size[i] != 1 && stride[i] != dense[i]) {
            return false;
        }
    }
    return true;
}

static struct tensor *new_in(struct engine *engine, const struct shape *shape, enum dtype dtype,
                             const order *in)
{
    struct tensor *tensor = tensor_new(engine, shape, dtype);
    tensor->transposed = !lies_in(tensor, in);
    dense_strides(shape, in, tensor->stride);
    return tensor;
}

/* For recipe.number. */
static uint64_t packed(const order *in)
{
    uint64_t bits = 0;
    for (int i = 0; i < DIMS; i++) {
        bits |= (uint64_t)in->dimension[i] << (4 * i);
    }
    return bits;
}

static order unpacked(uint64_t bits)
{
    order in;
    for (int i = 0; i < DIMS; i++) {
        in.dimension[i] = (int)(bits >> (4 * i) & 15);
    }
    return in;
}

/* --- what the kernels share -------------------------------------------------------------- */

/* In recipe.number: how each input lies, and how the result does. */
enum { LIES, LIES_RESULT = INPUTS, LIES_BY_LENGTH };

static uint64_t rounded_up(uint64_t number, uint64_t to)
{
    return (number + to - 1) / to * to;
}

static struct tensor *numbers_of_rows(struct engine *engine, const struct shape *query,
                                      uint64_t length)
{
    struct shape rows = {3, {query->size[BATCH], query->size[HEADS], (int64_t)length}};
    return tensor_new(engine, &rows, DTYPE_FLOAT32);
}

static bool is_tracked(const struct engine *engine, struct tensor *const inputs[INPUTS])
{
    bool any = false;
    for (int i = 0; i < INPUTS; i++) {
        any |= tensor_tracked(engine, inputs[i]);
    }
    return any;
}

static struct shape result_shape(struct tensor *const inputs[INPUTS])
{
    struct shape shape = inputs[QUERY]->shape;
    shape.size[DEPTH] = inputs[VALUE]->shape.size[DEPTH];
    return shape;
}

/* Keeps the inputs, and what else the derivative needs, in the order in which torch frees it. */
static void record(struct engine *engine, const char *name, backward_fn backward,
                   struct tensor *const inputs[INPUTS], const struct attention *how,
                   struct tensor *const others[], size_t count, struct tensor *result)
{
    if (!is_tracked(engine, inputs)) {
        return;
    }
    struct node *node = node_new(engine, name, backward, INPUTS);
    node->recipe.dtype = result->dtype;
    for (uint32_t i = 0; i < INPUTS; i++) {
        order in = order_of(inputs[i]);
        node_connect(engine, node, i, inputs[i]);
        node->recipe.shape[i] = inputs[i]->shape;
        node->recipe.number[LIES + i] = packed(&in);
        node_save(node, inputs[i]);
    }
    order in = order_of(result);
    node->recipe.number[LIES_RESULT] = packed(&in);
    node->recipe.number[LIES_BY_LENGTH] = lies_in(result, &by_length);
    node_save(node, how->mask);
    for (size_t i = 0; i < count; i++) {
        node_save(node, others[i]);
    }
    node_result(node, 0, result);
    node_drop(engine, node);
}

static void drop_all(struct engine *engine, struct tensor *const tensors[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tensor_drop(engine, tensors[i]);
    }
}

/* A gradient that lies otherwise is copied for the kernel; NULL: it need not be. */
static struct tensor *gradient_in(struct engine *engine, const struct tensor *grad, const order *in)
{
    return lies_in(grad, in) ? NULL : new_in(engine, &grad->shape, grad->dtype, in);
}

static struct tensor *gradient_of(struct engine *engine, const struct node *node, int input,
                                  const order *in)
{
    return new_in(engine, &node->recipe.shape[input], node->recipe.dtype, in);
}

/* As the inputs lie, without gaps. */
static void gradients_like_inputs(struct engine *engine, const struct node *node,
                                  struct tensor **results)
{
    for (int i = 0; i < INPUTS; i++) {
        order in = unpacked(node->recipe.number[LIES + i]);
        results[i] = gradient_of(engine, node, i, &in);
    }
}

/* --- cuDNN ------------------------------------------------------------------------------- */

/* A sum in 32 bits for the queries' gradient, and a number for each row. */
static void cudnn_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    const struct shape *query = &node->recipe.shape[QUERY];
    uint64_t rows = (uint64_t)(query->size[BATCH] * query->size[HEADS] * query->size[LENGTH]);
    order in = unpacked(node->recipe.number[LIES_RESULT]);
    gradients_like_inputs(engine, node, results);
    struct tensor *grad = gradient_in(engine, grads[0], &in);
    storage_scratch(engine, rows * 4 * ((uint64_t)query->size[DEPTH] + 1) + 256);
    tensor_drop(engine, grad);
}

struct tensor *cudnn_attention(struct engine *engine, struct tensor *const inputs[3],
                               const struct attention *how)
{
    static const struct shape scalar = {0, {0}};
    struct shape shape = result_shape(inputs);
    order in = order_of(inputs[QUERY]);
    struct tensor *seed = tensor_new(engine, &scalar, DTYPE_INT64);
    struct tensor *offset = tensor_new(engine, &scalar, DTYPE_INT64);
    struct tensor *result = new_in(engine, &shape, inputs[QUERY]->dtype, &in);
    struct tensor *sums = is_tracked(engine, inputs)
                              ? numbers_of_rows(engine, &shape, (uint64_t)shape.size[LENGTH])
                              : NULL;
    storage_scratch(engine, 256);
    struct tensor *const kept[] = {sums, result, offset, seed};
    record(engine, "ScaledDotProductCudnnAttentionBackward", cudnn_backward, inputs, how, kept, 4,
           result);
    struct tensor *const done[] = {seed, offset, sums};
    drop_all(engine, done, 3);
    return result;
}

/* --- flash attention --------------------------------------------------------------------- */

/* Into how many parts the keys are split so that a short or a small batch fills the GPU. */
static uint64_t flash_splits(uint64_t blocks, uint64_t processors, uint64_t key_blocks)
{
    double best = 0, efficiency[128 + 1] = {0};
    uint64_t most = key_blocks < 128 ? key_blocks : 128;
    if ((double)blocks >= 0.8 * (double)processors) {
        return 1;
    }
    for (uint64_t n = 1; n <= most; n++) {
        bool is_new = n == 1 || (key_blocks + n - 1) / n != (key_blocks + n - 2) / (n - 1);
        double waves = (double)(blocks * n) / (double)processors;
        uint64_t whole = (blocks * n + processors - 1) / processors;
        efficiency[n] = is_new ? waves / (double)whole : 0;
        best = efficiency[n] > best ? efficiency[n] : best;
    }
    for (uint64_t n = 1; n <= most; n++) {
        if (efficiency[n] > 0 && efficiency[n] >= 0.85 * best) {
            return n;
        }
    }
    return 1;
}

static uint64_t flash_depth(uint64_t depth)
{
    return rounded_up(depth, depth <= 128 ? 32 : 64);
}

/* Where the keys are split, each part has sums and results of its own. */
static void flash_parts(struct engine *engine, struct tensor *const inputs[INPUTS])
{
    const struct shape *query = &inputs[QUERY]->shape;
    uint64_t depth = (uint64_t)query->size[DEPTH], keys = (uint64_t)inputs[KEY]->shape.size[LENGTH];
    uint64_t heads = (uint64_t)(query->size[BATCH] * query->size[HEADS]);
    uint64_t length = (uint64_t)query->size[LENGTH];
    uint64_t block = depth <= 64 ? 256 : depth <= 128 ? 128 : 64;
    uint64_t parts = flash_splits(heads * ((length + 63) / 64), UINT64_C(2) * GPU_MULTIPROCESSORS,
                                  (keys + block - 1) / block);
    if (parts > 1) {
        struct storage *sums = storage_new(engine, parts * heads * length * 4);
        storage_scratch(engine, parts * heads * length * flash_depth(depth) * 4);
        storage_drop(engine, sums);
    }
}

/* With fewer heads of keys and values: their gradients for each head of the queries. */
static void flash_expanded(struct engine *engine, const struct node *node,
                           struct tensor *expanded[2])
{
    const struct recipe *recipe = &node->recipe;
    for (int i = 0; i < 2; i++) {
        struct shape shape = recipe->shape[KEY + i];
        bool is_grouped = shape.size[HEADS] != recipe->shape[QUERY].size[HEADS];
        shape.size[HEADS] = recipe->shape[QUERY].size[HEADS];
        expanded[i] = is_grouped ? tensor_new(engine, &shape, recipe->dtype) : NULL;
    }
}

static void flash_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    const struct shape *query = &node->recipe.shape[QUERY];
    uint64_t length = rounded_up((uint64_t)query->size[LENGTH], 128);
    uint64_t heads = (uint64_t)(query->size[BATCH] * query->size[HEADS]);
    struct tensor *grad = gradient_in(engine, grads[0], &by_length), *expanded[2];
    struct tensor *result =
        node->recipe.number[LIES_BY_LENGTH] ? NULL : tensor_like(engine, grads[0]);
    gradients_like_inputs(engine, node, results);
    struct tensor *sums = numbers_of_rows(engine, query, length);
    struct storage *sum_of_queries =
        storage_new(engine, heads * length * flash_depth((uint64_t)query->size[DEPTH]) * 4);
    flash_expanded(engine, node, expanded);
    drop_all(engine, (struct tensor *const[]){expanded[1], expanded[0]}, 2);
    storage_drop(engine, sum_of_queries);
    drop_all(engine, (struct tensor *const[]){sums, result, grad}, 3);
}

struct tensor *flash_attention(struct engine *engine, struct tensor *const inputs[3],
                               const struct attention *how)
{
    static const struct shape pair = {1, {2}}, scalar = {0, {0}};
    struct shape shape = result_shape(inputs);
    order in = order_of(inputs[QUERY]);
    struct tensor *result = new_in(engine, &shape, inputs[QUERY]->dtype, &in);
    struct tensor *sums = numbers_of_rows(engine, &shape, (uint64_t)shape.size[LENGTH]);
    struct tensor *state = tensor_new(engine, &pair, DTYPE_INT64);
    struct tensor *unused = tensor_new(engine, &scalar, DTYPE_INT64);
    if (how->dropout == 0) {
        flash_parts(engine, inputs);
    }
    struct tensor *const kept[] = {sums, result, state, unused};
    record(engine, "ScaledDotProductFlashAttentionBackward", flash_backward, inputs, how, kept, 4,
           result);
    struct tensor *const done[] = {unused, state, sums};
    drop_all(engine, done, 3);
    return result;
}

/* --- memory-efficient attention ---------------------------------------------------------- */

/* Sums of the queries' gradients, in blocks of 64 by 64 with locks, or of 128 by 64 where a head is
 * deeper. The kernels of 16 bits for heads deeper than 128 sum those of keys and values in 32. */
static uint64_t efficient_workspace(const struct recipe *recipe)
{
    const struct shape *query = &recipe->shape[QUERY];
    bool is_narrow = dtype_bytes(recipe->dtype) == 2;
    uint64_t depth = (uint64_t)query->size[DEPTH], keys = (uint64_t)recipe->shape[KEY].size[LENGTH];
    uint64_t block = depth > 64 ? 128 : 64,
             locks = is_narrow && block == 128 && depth <= 128 ? 8 : 16;
    uint64_t rows = ((uint64_t)query->size[LENGTH] + block - 1) / block;
    uint64_t columns = (depth + 63) / 64;
    uint64_t sums = is_narrow && depth > 128
                        ? 2 * rounded_up(keys, 64) * rounded_up(depth, 128) * sizeof(float)
                        : 0;
    uint64_t heads = (uint64_t)(query->size[BATCH] * query->size[HEADS]);
    return heads * (rows * columns * (block * 64 * 4 + locks) + sums);
}

/* The product of gradient and result, summed along each row: the kernels of 16 bits do it
 * themselves. */
static struct tensor *efficient_delta(struct engine *engine, const struct node *node,
                                      const struct tensor *grad)
{
    const struct shape *query = &node->recipe.shape[QUERY];
    uint64_t length = (uint64_t)query->size[LENGTH];
    if (dtype_bytes(node->recipe.dtype) == 2) {
        return numbers_of_rows(engine, query, length);
    }
    struct tensor *product = tensor_like(engine, grad);
    struct tensor *sum = numbers_of_rows(engine, query, length);
    struct tensor *delta = numbers_of_rows(engine, query, length);
    tensor_drop(engine, sum);
    tensor_drop(engine, product);
    return delta;
}

static void efficient_backward(struct engine *engine, struct node *node, struct tensor **grads,
                               struct tensor **results)
{
    struct tensor *grad = gradient_in(engine, grads[0], &by_length);
    for (int i = 0; i < INPUTS; i++) {
        results[i] = gradient_of(engine, node, i, &by_length);
    }
    struct tensor *delta = efficient_delta(engine, node, grads[0]);
    struct storage *workspace = storage_new(engine, efficient_workspace(&node->recipe));
    tensor_drop(engine, delta);
    storage_drop(engine, workspace);
    tensor_drop(engine, grad);
}

struct tensor *efficient_attention(struct engine *engine, struct tensor *const inputs[3],
                                   const struct attention *how)
{
    struct shape shape = result_shape(inputs);
    enum dtype dtype = inputs[QUERY]->dtype;
    struct tensor *result = new_in(engine, &shape, dtype, &by_length);
    struct tensor *sums =
        is_tracked(engine, inputs)
            ? numbers_of_rows(engine, &shape, rounded_up((uint64_t)shape.size[LENGTH], 32))
            : NULL;
    if (dtype_bytes(dtype) == 2 && shape.size[DEPTH] > 128) { /* it is summed in 32 bits */
        storage_scratch(engine, shape_count(&shape) * 4);
    }
    struct tensor *const kept[] = {sums, result};
    record(engine, "ScaledDotProductEfficientAttentionBackward", efficient_backward, inputs, how,
           kept, 2, result);
    tensor_drop(engine, sums);
    return result;
}
