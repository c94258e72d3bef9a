/* gmd_operations.h - operations on tensors: what each allocates, saves for its derivative, and
 * frees.
 *
 * Each returns a new reference, or NULL after gmd_misuse(); NULL as an input gives NULL, so that a
 * chain of operations needs one check at its end. Sizes and order of the allocations are those that
 * torch 2.11 made on an H200 in shared/traces. */
#ifndef GMD_OPS_H
#define GMD_OPS_H

#include "gmd_autograd.h"

/* of two, broadcast against each other (broadcast.c) */
gmd_tensor *gmd_op_add(gmd_engine *engine, gmd_tensor *a, gmd_tensor *b, bool in_place);
gmd_tensor *gmd_op_mul(gmd_engine *engine, gmd_tensor *a, gmd_tensor *b, bool in_place);

/* elementwise (basic.c) */
gmd_tensor *gmd_op_scale(gmd_engine *engine, gmd_tensor *a); /* by a number; also a + number */
gmd_tensor *gmd_op_scale_in_place(gmd_engine *engine, gmd_tensor *a);
gmd_tensor *gmd_op_square(gmd_engine *engine, gmd_tensor *a);
gmd_tensor *gmd_op_relu(gmd_engine *engine, gmd_tensor *a, bool in_place);
gmd_tensor *gmd_op_dropout(gmd_engine *engine, gmd_tensor *a);
gmd_tensor *gmd_op_mean(gmd_engine *engine, gmd_tensor *a);
gmd_tensor *gmd_op_sum(gmd_engine *engine, gmd_tensor *a);
gmd_tensor *gmd_op_clone(gmd_engine *engine, gmd_tensor *a);
gmd_tensor *gmd_op_reshape(gmd_engine *engine, gmd_tensor *a, const gmd_shape *shape); /* a view */
/* A view with its first two dimensions swapped; kernels copy it, gradients come back copied. */
gmd_tensor *gmd_op_swap(gmd_engine *engine, gmd_tensor *a);

/* activations and products (math.c) */
typedef enum gmd_activation {
    GMD_TANH,
    GMD_SIGMOID,
    GMD_EXP,
    GMD_GELU,
    GMD_SILU,
    GMD_ACTIVATIONS
} gmd_activation;
gmd_tensor *gmd_op_activation(gmd_engine *engine, gmd_activation kind, gmd_tensor *a);
gmd_tensor *gmd_op_softmax(gmd_engine *engine, gmd_tensor *input);
gmd_tensor *gmd_op_bmm(gmd_engine *engine, gmd_tensor *a, gmd_tensor *b); /* any batch dimensions */
/* input [rows, in] by the transpose of weight [out, in] */
gmd_tensor *gmd_op_product(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight);

/* conversions (cast.c) */
gmd_tensor *gmd_op_cast(gmd_engine *engine, gmd_tensor *a, gmd_dtype dtype);

/* parts and joins (shape.c); dimensions count from 0. The first four are views. */
gmd_tensor *gmd_op_narrow(gmd_engine *engine, gmd_tensor *a, int dimension, int64_t length);
gmd_tensor *gmd_op_select(gmd_engine *engine, gmd_tensor *a, int dimension);
gmd_tensor *gmd_op_transpose(gmd_engine *engine, gmd_tensor *a, int first, int second);
void gmd_op_unbind(gmd_engine *engine, gmd_tensor *a, int dimension, gmd_tensor **parts);
gmd_tensor *gmd_op_contiguous(gmd_engine *engine, gmd_tensor *a); /* a copy where a has gaps */
gmd_tensor *gmd_op_cat(gmd_engine *engine, gmd_tensor *const *parts, size_t count, int dimension);
gmd_tensor *gmd_op_stack(gmd_engine *engine, gmd_tensor *const *parts, size_t count, int dimension);

/* losses (loss.c) */
gmd_tensor *gmd_op_cross_entropy(gmd_engine *engine, gmd_tensor *logits, gmd_tensor *target);

/* layers with weights (layers.c); `bias` may be NULL */
typedef struct gmd_conv {
    int64_t kernel, stride, padding;
} gmd_conv;
gmd_tensor *gmd_op_linear(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight,
                          gmd_tensor *bias);
gmd_tensor *gmd_op_conv2d(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight,
                          gmd_tensor *bias, gmd_conv conv);
gmd_tensor *gmd_op_batch_norm(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight,
                              gmd_tensor *bias, bool training);
gmd_tensor *gmd_op_layer_norm(gmd_engine *engine, gmd_tensor *input, gmd_tensor *weight,
                              gmd_tensor *bias);
gmd_tensor *gmd_op_max_pool2d(gmd_engine *engine, gmd_tensor *input, gmd_conv pool);
gmd_tensor *gmd_op_global_avg_pool(gmd_engine *engine, gmd_tensor *input);
gmd_tensor *gmd_op_embedding(gmd_engine *engine, gmd_tensor *indices,
                             gmd_tensor *weight); /* sequence.c */

/* cuDNN's recurrent networks (rnn.c): input [batch, length, features], or with the length
 * first; states [layers * directions, batch, hidden]; `flat` is the storage of all weights,
 * `weights` are the views of it. Gives output, h and, of an LSTM, c. */
typedef enum gmd_rnn_kind { GMD_LSTM, GMD_GRU } gmd_rnn_kind;
typedef struct gmd_rnn {
    gmd_rnn_kind kind;
    int64_t layers, directions, hidden;
    bool batch_first;
    bool packed; /* its input is of gmd_op_pack_sequences() */
    gmd_storage *flat;
    gmd_tensor **weights; /* 4 for each layer and direction */
    size_t weight_count;
} gmd_rnn;
bool gmd_op_rnn(gmd_engine *engine, const gmd_rnn *rnn, gmd_tensor *input, gmd_tensor *h,
                gmd_tensor *c, gmd_tensor *results[3]);

/* One step of a GRU (cell.c): input [batch, in], state [batch, hidden]. */
gmd_tensor *gmd_op_gru_cell(gmd_engine *engine, gmd_tensor *const weights[4], gmd_tensor *input,
                            gmd_tensor *state);

/* Sequences of a batch (sequence.c), all of the same length: [batch, length, features] packed
 * for cuDNN, with the length first, and back to a view with the batch first. */
gmd_tensor *gmd_op_pack_sequences(gmd_engine *engine, gmd_tensor *padded);
gmd_tensor *gmd_op_pad_sequences(gmd_engine *engine, gmd_tensor *packed);

/* Attention of a sequence to itself (attention.c): `packed` is the projection to queries, keys
 * and values, [length, batch, 3 * features]; gives [length, batch, features]. Drops `packed`, whose
 * memory goes as soon as it is copied. */
gmd_tensor *gmd_op_self_attention(gmd_engine *engine, gmd_tensor *packed, int64_t heads);

/* The same with the batch first, as views of `packed` (borrowed): [batch, length, 3 * features]. */
gmd_tensor *gmd_op_split_attention(gmd_engine *engine, gmd_tensor *packed, int64_t heads);

/* cublas.c: the memory that cuBLAS keeps for a (thread, stream) from its first product on;
 * `with_bias`: also that of cuBLASLt, which fuses the bias. */
void gmd_cublas_workspace(gmd_engine *engine, bool with_bias);
void gmd_cublas_release(gmd_engine *engine); /* at the end of the process */

#endif
