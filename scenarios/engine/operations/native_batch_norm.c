/* native_batch_norm.c - facts: ATen/native/cuda/Normalization.cu and Normalization.cuh of PyTorch
 * 2.11 (flexible_launch_configs, batch_norm_choose_impl), and the recordings "functions" and
 * layer_batch_norm. */
#include "native_batch_norm.h"

#include "gmd_layout.h"
#include "gmd_min.h"
#include "layer_node.h"
#include "reduce.h"

#define TILE_WIDTH     32
#define MAX_THREADS    512
#define ROWS_A_THREAD  16
#define MAX_BLOCKS     128
#define FEWEST_SHARING 8 /* thread blocks for which it is worth to share a channel */

static struct tensor *of_channels(struct engine *engine, uint64_t channels)
{
    struct shape shape = {1, {(int64_t)channels}};
    return tensor_new(engine, &shape, DTYPE_FLOAT32);
}

/* Where several thread blocks share a channel they meet in a buffer, `sums` for each of them, and
 * at a semaphore. */
static void sum_channels(struct engine *engine, const struct shape *shape, uint64_t sums)
{
    uint64_t rows = (uint64_t)shape->size[0], channels = (uint64_t)shape->size[1];
    uint64_t width = gmd_min(last_power_of_two(gmd_max(channels, 1)), TILE_WIDTH);
    uint64_t wanted = last_power_of_two(gmd_max((rows + ROWS_A_THREAD - 1) / ROWS_A_THREAD, 1));
    uint64_t height = gmd_min(wanted, MAX_THREADS / width);
    if (width * height != MAX_THREADS) {
        width = gmd_min(last_power_of_two(gmd_max(channels, 1)), MAX_THREADS / height);
    }
    uint64_t a_block = height * ROWS_A_THREAD;
    uint64_t blocks = gmd_min((rows + a_block - 1) / a_block, MAX_BLOCKS);
    if (blocks < FEWEST_SHARING) {
        return;
    }
    struct storage *partial = storage_new(engine, sums * channels * blocks * sizeof(float));
    storage_scratch(engine, sizeof(int32_t) * ((channels + width - 1) / width));
    storage_drop(engine, partial);
}

/* A gradient that does not lie in rows, as that of a sum, goes to a kernel that shares nothing. */
static void native_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    uint64_t channels = (uint64_t)node->recipe.shape[0].size[1];
    struct tensor *sum = of_channels(engine, channels), *product = of_channels(engine, channels);
    if (node_wants(node, 1)) {
        results[1] = tensor_new(engine, &node->recipe.shape[1], node->recipe.weight_dtype);
        results[2] = tensor_new(engine, &node->recipe.shape[1], node->recipe.weight_dtype);
    }
    if (tensor_lies_as(grads[0], FORMAT_ROWS) && !grads[0]->expanded) {
        sum_channels(engine, &node->recipe.shape[0], 2);
    }
    results[0] = node_wants(node, 0) ? grad_of_input(engine, node) : NULL;
    tensor_drop(engine, product);
    tensor_drop(engine, sum);
}

/* Mean and inverse deviation are kept in evaluation, too. */
struct tensor *native_batch_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                                 struct tensor *bias, bool training)
{
    uint64_t channels = (uint64_t)input->shape.size[1];
    struct tensor *result = tensor_like(engine, input);
    struct tensor *mean = of_channels(engine, channels);
    struct tensor *deviation = of_channels(engine, channels);
    if (training && tensor_lies_as(input, FORMAT_ROWS)) {
        sum_channels(engine, &input->shape, 4);
    }
    struct node *node =
        layer_node(engine, "NativeBatchNormBackward", native_backward, input, weight, bias);
    layer_node_keep(engine, node, (struct tensor *[]){input, weight, mean, deviation}, 4, result);
    tensor_drop(engine, mean);
    tensor_drop(engine, deviation);
    return result;
}
