/* gmd_operations.h - operations on tensors: what each allocates, saves for its derivative, and
 * frees.
 *
 * Each returns a new reference, or NULL after engine_misuse(); NULL as an input gives NULL, so that
 * a chain of operations needs one check at its end. Sizes and order of the allocations are those
 * that torch 2.11 made on an H200 in shared/traces. */
#ifndef GMD_OPERATIONS_H
#define GMD_OPERATIONS_H

#include "gmd_autograd.h"

/* of two, broadcast against each other (broadcast.c) */
struct tensor *op_sub(struct engine *engine, struct tensor *a, struct tensor *b);
struct tensor *op_div(struct engine *engine, struct tensor *a, struct tensor *b);
struct tensor *op_add(struct engine *engine, struct tensor *a, struct tensor *b, bool in_place);
struct tensor *op_mul(struct engine *engine, struct tensor *a, struct tensor *b, bool in_place);

/* elementwise (basic.c) */
struct tensor *op_shift(struct engine *engine, struct tensor *a, bool in_place); /* a + number */
struct tensor *op_scale(struct engine *engine, struct tensor *a); /* by a number; number - a */
struct tensor *op_scale_in_place(struct engine *engine, struct tensor *a);
struct tensor *op_pow(struct engine *engine, struct tensor *a, double exponent);
struct tensor *op_sqrt(struct engine *engine, struct tensor *a);
struct tensor *op_reciprocal(struct engine *engine, struct tensor *a);
struct tensor *op_rsqrt(struct engine *engine, struct tensor *a);
struct tensor *op_relu(struct engine *engine, struct tensor *a, bool in_place);
struct tensor *op_dropout(struct engine *engine, struct tensor *a, double p);
struct tensor *op_clone(struct engine *engine, struct tensor *a);
/* A view with its first two dimensions swapped; kernels copy it, gradients come back copied. */
struct tensor *op_swap(struct engine *engine, struct tensor *a);

/* reductions (reductions.c); `dimensions` are bits, 0: all */
struct tensor *op_mean(struct engine *engine, struct tensor *a, uint32_t dimensions, bool keepdim);
struct tensor *op_sum(struct engine *engine, struct tensor *a, uint32_t dimensions, bool keepdim);
struct tensor *op_max(struct engine *engine, struct tensor *a);
struct tensor *op_max_along(struct engine *engine, struct tensor *a, int dimension, bool keepdim,
                            struct tensor **indices);

/* activations and products (math.c), softmax (softmax.c) */
enum activation {
    ACTIVATION_TANH,
    ACTIVATION_SIGMOID,
    ACTIVATION_EXP,
    ACTIVATION_GELU,
    ACTIVATION_SILU,
    ACTIVATION_LOG,
    ACTIVATION_LEAKY_RELU,
    ACTIVATION_ELU,
    ACTIVATION_SOFTPLUS,
    ACTIVATION_MISH,
    ACTIVATION_HARDSWISH,
    ACTIVATION_RELU6,
    ACTIVATIONS
};
struct tensor *op_activation(struct engine *engine, enum activation kind, struct tensor *a);
struct tensor *op_leaky_relu_in_place(struct engine *engine, struct tensor *a);
struct tensor *op_softmax(struct engine *engine, struct tensor *input);
struct tensor *op_log_softmax(struct engine *engine, struct tensor *input);
/* In the input's own type, also under autocast. */
struct tensor *op_log_softmax_as_it_is(struct engine *engine, struct tensor *input);
/* products of matrices (products.c), with any dimensions before the last two, which are broadcast
 */
struct tensor *op_bmm(struct engine *engine, struct tensor *a, struct tensor *b);
/* input [rows, in] by the transpose of weight [out, in] */
struct tensor *op_product(struct engine *engine, struct tensor *input, struct tensor *weight);

/* conversions (cast.c) */
struct tensor *op_cast(struct engine *engine, struct tensor *a, enum dtype dtype);

/* parts and joins (shape.c); dimensions count from 0. The first three are views. */
struct tensor *op_narrow(struct engine *engine, struct tensor *a, int dimension, int64_t length);
struct tensor *op_select(struct engine *engine, struct tensor *a, int dimension);
void op_unbind(struct engine *engine, struct tensor *a, int dimension, struct tensor **parts);
struct tensor *op_contiguous(struct engine *engine, struct tensor *a); /* a copy where a has gaps */
struct tensor *op_cat(struct engine *engine, struct tensor *const *parts, size_t count,
                      int dimension);
struct tensor *op_stack(struct engine *engine, struct tensor *const *parts, size_t count,
                        int dimension);

/* other shapes and orders, as views (views.c) */
struct tensor *op_permute(struct engine *engine, struct tensor *a, const int order[SHAPE_MAX_DIMS]);
struct tensor *op_transpose(struct engine *engine, struct tensor *a, int first, int second);
struct tensor *op_view_as_it_lies(struct engine *engine, struct tensor *a,
                                  const struct shape *shape); /* refused where it has gaps */
struct tensor *op_reshape_or_copy(struct engine *engine, struct tensor *a,
                                  const struct shape *shape);
struct tensor *op_unsqueeze(struct engine *engine, struct tensor *a, int dimension);
struct tensor *op_squeeze(struct engine *engine, struct tensor *a, uint32_t dimensions);
struct tensor *op_expand(struct engine *engine, struct tensor *a, const struct shape *shape);

/* losses (loss.c) */
enum reduction { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM };
struct tensor *op_cross_entropy(struct engine *engine, struct tensor *logits, struct tensor *target,
                                enum reduction reduction);
struct tensor *op_mse_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                           enum reduction reduction);
struct tensor *op_l1_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                          enum reduction reduction);
struct tensor *op_smooth_l1_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                                 enum reduction reduction);
struct tensor *op_huber_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                             enum reduction reduction);
struct tensor *op_nll_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                           enum reduction reduction);
struct tensor *op_binary_cross_entropy(struct engine *engine, struct tensor *input,
                                       struct tensor *target, enum reduction reduction);
struct tensor *op_bce_with_logits(struct engine *engine, struct tensor *input,
                                  struct tensor *target, enum reduction reduction);
struct tensor *op_kl_div(struct engine *engine, struct tensor *input, struct tensor *target,
                         enum reduction reduction, bool log_target);

/* layers with weights (layers.c, norms.c); `bias` may be NULL */
struct conv {
    int64_t kernel[2], stride[2], padding[2], dilation[2]; /* height, width */
    int64_t groups;
};
static inline struct conv conv_square(int64_t kernel, int64_t stride, int64_t padding)
{
    return (struct conv){
        {kernel, kernel}, {stride, stride}, {padding, padding}, {1, 1}, .groups = 1};
}
struct tensor *op_linear(struct engine *engine, struct tensor *input, struct tensor *weight,
                         struct tensor *bias);
struct tensor *op_conv2d(struct engine *engine, struct tensor *input, struct tensor *weight,
                         struct tensor *bias, struct conv conv);
/* Input and weight of three dimensions, seen as images of height 1. */
struct tensor *op_conv1d(struct engine *engine, struct tensor *input, struct tensor *weight,
                         struct tensor *bias, struct conv conv);
struct tensor *op_batch_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias, bool training);
struct tensor *op_layer_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias);
struct tensor *op_group_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias, int64_t groups);
struct tensor *op_rms_norm(struct engine *engine, struct tensor *input, struct tensor *weight);

/* images of other sizes (pools.c) */
struct upsample {
    int64_t size[2]; /* height, width; or */
    double scale;    /* of both; 0: not given */
    bool bilinear;   /* else the nearest */
};
struct tensor *op_max_pool2d(struct engine *engine, struct tensor *input, struct conv pool);
struct tensor *op_avg_pool2d(struct engine *engine, struct tensor *input, struct conv pool);
struct tensor *op_adaptive_avg_pool2d(struct engine *engine, struct tensor *input,
                                      const int64_t size[2]);
struct tensor *op_upsample(struct engine *engine, struct tensor *input, struct upsample to);
struct tensor *op_embedding(struct engine *engine, struct tensor *indices,
                            struct tensor *weight); /* sequence.c */

/* cuDNN's recurrent networks (rnn.c): input [batch, length, features], or with the length
 * first; states [layers * directions, batch, hidden]; `flat` is the storage of all weights,
 * `weights` are the views of it. Gives output, h and, of an LSTM, c. */
enum rnn_kind { RNN_LSTM, RNN_GRU };
struct rnn {
    enum rnn_kind kind;
    int64_t layers, directions, hidden;
    bool batch_first;
    double dropout; /* between layers, while it trains */
    bool packed;    /* its input is of op_pack_sequences() */
    struct storage *flat;
    struct tensor **weights; /* 4 for each layer and direction */
    size_t weight_count;
};
bool op_rnn(struct engine *engine, const struct rnn *rnn, struct tensor *input, struct tensor *h,
            struct tensor *c, struct tensor *results[3]);

/* One step of a GRU (cell.c): input [batch, in], state [batch, hidden]. */
struct tensor *op_gru_cell(struct engine *engine, struct tensor *const weights[4],
                           struct tensor *input, struct tensor *state);

/* Sequences of a batch (sequence.c), all of the same length: [batch, length, features] packed
 * for cuDNN, with the length first, and back to a view with the batch first. */
struct tensor *op_pack_sequences(struct engine *engine, struct tensor *padded);
struct tensor *op_pad_sequences(struct engine *engine, struct tensor *packed);

/* Attention of a sequence to itself (attention.c): `packed` is the projection to queries, keys
 * and values, [length, batch, 3 * features]; gives [length, batch, features]. Drops `packed`, whose
 * memory goes as soon as it is copied. */
struct tensor *op_self_attention(struct engine *engine, struct tensor *packed, int64_t heads);

/* The same with the batch first, as views of `packed` (borrowed): [batch, length, 3 * features]. */
struct tensor *op_split_attention(struct engine *engine, struct tensor *packed, int64_t heads);

/* cublas.c: the memory that cuBLAS keeps for a (thread, stream) from its first product on;
 * `with_bias`: also that of cuBLASLt, which fuses the bias. */
void cublas_workspace_use(struct engine *engine, bool with_bias);

/* Tells the sink where workspaces of cuDNN came from so far, and how far the figures may be off. */
void workspaces_tell(struct engine *engine);
/* The states of cuDNN's random numbers, which the process keeps from its first dropout on. */
void cudnn_dropout_use(struct engine *engine);
void cublas_workspace_release(struct engine *engine); /* at the end of the process */

#endif
