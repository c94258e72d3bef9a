/* gmd_dot_attention.h - scaled_dot_product_attention: which kernel PyTorch takes, and what that one
 * allocates and keeps. */
#ifndef GMD_DOT_ATTENTION_H
#define GMD_DOT_ATTENTION_H

#include "gmd_operations.h"

enum attention_backend {
    ATTENTION_CUDNN, /* in the order in which PyTorch tries them on compute capability 9.0 */
    ATTENTION_FLASH,
    ATTENTION_EFFICIENT,
    ATTENTION_MATH,
    ATTENTION_BACKENDS,
    ATTENTION_ANY = ATTENTION_BACKENDS
};

const char *attention_backend_name(enum attention_backend backend); /* "flash" */

struct attention {
    struct tensor *mask; /* truth, or what is added to the scores; NULL: none */
    double dropout;
    bool causal;
    bool grouped; /* there may be fewer heads of keys and values than of queries */
    enum attention_backend backend;
};

/* Queries [batch, heads, length, depth], keys and values [batch, heads, other length, depth]; the
 * mathematical one takes any leading dimensions. A backend that cannot take them is
 * engine_misuse(). */
struct tensor *op_attention(struct engine *engine, struct tensor *query, struct tensor *key,
                            struct tensor *value, const struct attention *how);

/* The kernel that self-attention of [batch, heads, length, depth] takes. */
enum attention_backend attention_backend_of(struct tensor *input);

/* Takes the last dimension of `a` apart into parts of the sizes, as views; the gradients of all
 * parts are joined. */
void op_split(struct engine *engine, struct tensor *a, int dimension, const int64_t *sizes,
              uint32_t count, struct tensor **parts);

#endif
