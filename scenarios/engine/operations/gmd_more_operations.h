/* gmd_more_operations.h - operations by index and by mask, along a dimension, and elementwise ones
 * that few models need. As in gmd_operations.h, each returns a new reference, or NULL after
 * engine_misuse(); dimensions count from 0. */
#ifndef GMD_MORE_OPERATIONS_H
#define GMD_MORE_OPERATIONS_H

#include "gmd_operations.h"

/* by tensors of indices (indexing.c) */
struct tensor *op_index_select(struct engine *engine, struct tensor *a, int dimension,
                               struct tensor *indices);
struct tensor *op_gather(struct engine *engine, struct tensor *a, int dimension,
                         struct tensor *indices);
struct tensor *op_scatter_add(struct engine *engine, struct tensor *a, int dimension,
                              struct tensor *indices, struct tensor *from);

/* by masks (masks.c). A NULL tensor is a number. */
struct tensor *op_compare(struct engine *engine, struct tensor *a, struct tensor *b);
struct tensor *op_masked_fill(struct engine *engine, struct tensor *a, struct tensor *mask,
                              bool in_place);
struct tensor *op_where(struct engine *engine, struct tensor *condition, struct tensor *a,
                        struct tensor *b);
struct tensor *op_triangle(struct engine *engine, struct tensor *a, bool upper);

/* along a dimension (sorting.c) */
struct tensor *op_cumsum(struct engine *engine, struct tensor *a, int dimension);
struct tensor *op_sort(struct engine *engine, struct tensor *a, int dimension,
                       struct tensor **indices);
struct tensor *op_topk(struct engine *engine, struct tensor *a, int64_t k, int dimension,
                       struct tensor **indices);
struct tensor *op_argmax(struct engine *engine, struct tensor *a, int dimension, bool keepdim);

/* the variance, or its root (spread.c); `dimensions` are bits, 0: all */
struct tensor *op_variance(struct engine *engine, struct tensor *a, uint32_t dimensions,
                           bool keepdim, bool is_root);

/* elementwise (elementwise.c): the derivative of each takes temporaries of its own */
enum elementwise { ELEMENTWISE_ABS, ELEMENTWISE_SIN, ELEMENTWISE_COS, ELEMENTWISES };
struct tensor *op_elementwise(struct engine *engine, enum elementwise kind, struct tensor *a);
/* Between two numbers, or bounded by one of them. */
struct tensor *op_clamp(struct engine *engine, struct tensor *a, bool has_both);

/* elements in other places (rearrange.c). `margins`: before and after, of the last dimension first;
 * `repeats`: for each dimension, and for new ones before. */
struct tensor *op_flip(struct engine *engine, struct tensor *a);
struct tensor *op_roll(struct engine *engine, struct tensor *a);
struct tensor *op_pad(struct engine *engine, struct tensor *a, const int64_t *margins, int count);
struct tensor *op_tile(struct engine *engine, struct tensor *a, const struct shape *repeats);

/* lengths of vectors (vector_norm.c); `dimensions` are bits, 0: all */
struct tensor *op_vector_norm(struct engine *engine, struct tensor *a, uint32_t dimensions,
                              bool keepdim);
struct tensor *op_normalize(struct engine *engine, struct tensor *a, int dimension);
struct tensor *op_logsumexp(struct engine *engine, struct tensor *a, uint32_t dimensions,
                            bool keepdim);

/* layers (conv_transpose.c, lstm_cell.c, instance_norm.c, norms.c) */
struct tensor *op_conv_transpose2d(struct engine *engine, struct tensor *input,
                                   struct tensor *weight, struct tensor *bias, struct conv conv,
                                   const int64_t output_padding[2]);
/* One step of an LSTM: gives h and c. */
bool op_lstm_cell(struct engine *engine, struct tensor *const weights[4], struct tensor *input,
                  struct tensor *h, struct tensor *c, struct tensor *results[2]);
/* `weight` and `bias` may be NULL. */
struct tensor *op_instance_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                                struct tensor *bias);

/* Normalised by channels without a weight. */
struct tensor *op_plain_norm(struct engine *engine, struct tensor *input, int64_t channels);

/* In another memory format: a copy where it does not lie so (formats.c). */
struct tensor *op_to_channels_last(struct engine *engine, struct tensor *a);

#endif
