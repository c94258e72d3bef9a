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
struct tensor *op_add(struct engine *engine, struct tensor *a, struct tensor *b, bool in_place);
struct tensor *op_mul(struct engine *engine, struct tensor *a, struct tensor *b, bool in_place);

/* elementwise (basic.c) */
struct tensor *op_scale(struct engine *engine, struct tensor *a); /* by a number; also a + number */
struct tensor *op_scale_in_place(struct engine *engine, struct tensor *a);
struct tensor *op_square(struct engine *engine, struct tensor *a);
struct tensor *op_relu(struct engine *engine, struct tensor *a, bool in_place);
struct tensor *op_dropout(struct engine *engine, struct tensor *a);
struct tensor *op_mean(struct engine *engine, struct tensor *a);
struct tensor *op_sum(struct engine *engine, struct tensor *a);
struct tensor *op_clone(struct engine *engine, struct tensor *a);
struct tensor *op_reshape(struct engine *engine, struct tensor *a,
                          const struct shape *shape); /* a view */
/* A view with its first two dimensions swapped; kernels copy it, gradients come back copied. */
struct tensor *op_swap(struct engine *engine, struct tensor *a);

/* activations and products (math.c) */
enum activation {
    ACTIVATION_TANH,
    ACTIVATION_SIGMOID,
    ACTIVATION_EXP,
    ACTIVATION_GELU,
    ACTIVATION_SILU,
    ACTIVATIONS
};
struct tensor *op_activation(struct engine *engine, enum activation kind, struct tensor *a);
struct tensor *op_softmax(struct engine *engine, struct tensor *input);
struct tensor *op_bmm(struct engine *engine, struct tensor *a,
                      struct tensor *b); /* any batch dimensions */
/* input [rows, in] by the transpose of weight [out, in] */
struct tensor *op_product(struct engine *engine, struct tensor *input, struct tensor *weight);

/* conversions (cast.c) */
struct tensor *op_cast(struct engine *engine, struct tensor *a, enum dtype dtype);

/* parts and joins (shape.c); dimensions count from 0. The first four are views. */
struct tensor *op_narrow(struct engine *engine, struct tensor *a, int dimension, int64_t length);
struct tensor *op_select(struct engine *engine, struct tensor *a, int dimension);
struct tensor *op_transpose(struct engine *engine, struct tensor *a, int first, int second);
void op_unbind(struct engine *engine, struct tensor *a, int dimension, struct tensor **parts);
struct tensor *op_contiguous(struct engine *engine, struct tensor *a); /* a copy where a has gaps */
struct tensor *op_cat(struct engine *engine, struct tensor *const *parts, size_t count,
                      int dimension);
struct tensor *op_stack(struct engine *engine, struct tensor *const *parts, size_t count,
                        int dimension);

/* losses (loss.c) */
struct tensor *op_cross_entropy(struct engine *engine, struct tensor *logits,
                                struct tensor *target);

/* layers with weights (layers.c); `bias` may be NULL */
struct conv {
    int64_t kernel, stride, padding;
};
struct tensor *op_linear(struct engine *engine, struct tensor *input, struct tensor *weight,
                         struct tensor *bias);
struct tensor *op_conv2d(struct engine *engine, struct tensor *input, struct tensor *weight,
                         struct tensor *bias, struct conv conv);
struct tensor *op_batch_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias, bool training);
struct tensor *op_layer_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias);
struct tensor *op_max_pool2d(struct engine *engine, struct tensor *input, struct conv pool);
struct tensor *op_global_avg_pool(struct engine *engine, struct tensor *input);
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
    bool packed; /* its input is of op_pack_sequences() */
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
void cublas_workspace_release(struct engine *engine); /* at the end of the process */

#endif
