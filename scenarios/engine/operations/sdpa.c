/* sdpa.c - scaled_dot_product_attention: the choice of the kernel, what is done to the inputs
 * before, and the mathematical one, which is made of other operations. Facts:
 * ATen/native/transformers/attention.cpp and cuda/sdp_utils.cpp of PyTorch 2.11. */
#include "attention_kernels.h"
#include "gmd_autocast.h"

enum { QUERY, KEY, VALUE, INPUTS };
enum { BATCH, HEADS, LENGTH, DEPTH };

static const char *const names[ATTENTION_BACKENDS] = {
    [ATTENTION_CUDNN] = "cudnn",
    [ATTENTION_FLASH] = "flash",
    [ATTENTION_EFFICIENT] = "efficient",
    [ATTENTION_MATH] = "math",
};

const char *attention_backend_name(enum attention_backend backend)
{
    return names[backend];
}

/* --- the choice -------------------------------------------------------------------------- */

typedef struct call {
    struct tensor *inputs[INPUTS];
    const struct attention *how;
} call;

static int64_t size_of(const call *of, int input, int dimension)
{
    return of->inputs[input]->shape.size[dimension];
}

static bool is_grouped(const call *of)
{
    const struct shape *query = &of->inputs[QUERY]->shape, *key = &of->inputs[KEY]->shape;
    return query->size[query->dims - 3] != key->size[key->dims - 3];
}

static bool is_narrow(const call *of)
{
    return dtype_bytes(of->inputs[QUERY]->dtype) == 2;
}

static bool are_equally_deep(const call *of)
{
    return size_of(of, QUERY, DEPTH) == size_of(of, VALUE, DEPTH);
}

/* Each gives what is in the way; NULL: nothing is. */
static const char *no_cudnn(const call *of)
{
    double sixteenths = of->how->dropout * 16;
    int64_t deepest = size_of(of, VALUE, DEPTH) > size_of(of, QUERY, DEPTH)
                          ? size_of(of, VALUE, DEPTH)
                          : size_of(of, QUERY, DEPTH);
    if (!is_narrow(of)) {
        return "takes 16 bits";
    }
    if (size_of(of, QUERY, DEPTH) % 8 != 0 || size_of(of, VALUE, DEPTH) % 8 != 0 || deepest > 256) {
        return "takes a depth that is a multiple of 8 and at most 256";
    }
    if (sixteenths != (double)(int)sixteenths) {
        return "takes a dropout that is a multiple of 1/16";
    }
    if (size_of(of, KEY, LENGTH) == 1 ||
        (of->how->dropout > 0 && size_of(of, QUERY, LENGTH) == 1)) {
        return "takes more than one key, and with dropout more than one query";
    }
    return NULL;
}

static const char *no_flash(const call *of)
{
    if (!is_narrow(of)) {
        return "takes 16 bits";
    }
    if (of->how->mask) {
        return "takes no mask";
    }
    if (!are_equally_deep(of) || size_of(of, QUERY, DEPTH) > 256) {
        return "takes one depth of at most 256";
    }
    if (of->how->causal && size_of(of, QUERY, LENGTH) != size_of(of, KEY, LENGTH)) {
        return "takes as many keys as queries where it is causal";
    }
    return NULL;
}

static const char *no_efficient(const call *of)
{
    int64_t step = is_narrow(of) ? 8 : 4;
    if (of->inputs[QUERY]->dtype == DTYPE_FLOAT64) {
        return "takes 32 or 16 bits";
    }
    if (size_of(of, QUERY, DEPTH) % step != 0 || size_of(of, VALUE, DEPTH) % step != 0) {
        return "takes a depth that is a multiple of 8, of 4 in 32 bits";
    }
    return is_grouped(of) ? "takes as many heads of keys and values as of queries" : NULL;
}

static const char *no_fused(const call *of)
{
    if (of->inputs[QUERY]->shape.dims != 4) {
        return "takes 4 dimensions";
    }
    for (int i = 0; i < INPUTS; i++) {
        if (shape_count(&of->inputs[i]->shape) == 0) {
            return "takes tensors with elements";
        }
    }
    return NULL;
}

static const char *in_the_way(const call *of, enum attention_backend backend)
{
    const char *reason = backend == ATTENTION_MATH ? NULL : no_fused(of);
    if (reason || backend == ATTENTION_MATH) {
        return reason;
    }
    return backend == ATTENTION_CUDNN   ? no_cudnn(of)
           : backend == ATTENTION_FLASH ? no_flash(of)
                                        : no_efficient(of);
}

static enum attention_backend first_that_can(const call *of)
{
    enum attention_backend backend = 0;
    while (in_the_way(of, backend)) {
        backend++;
    }
    return backend;
}

enum attention_backend attention_backend_of(struct tensor *input)
{
    const struct attention how = {.backend = ATTENTION_ANY};
    return first_that_can(&(call){.inputs = {input, input, input}, .how = &how});
}

/* ATTENTION_BACKENDS after engine_misuse(). */
static enum attention_backend chosen(struct engine *engine, const call *of)
{
    enum attention_backend backend = of->how->backend;
    if (backend == ATTENTION_ANY) {
        return first_that_can(of);
    }
    const char *reason = in_the_way(of, backend);
    if (reason) {
        engine_misuse(engine, "scaled_dot_product_attention: the backend %s %s", names[backend],
                      reason);
        return ATTENTION_BACKENDS;
    }
    return backend;
}

/* --- masks ------------------------------------------------------------------------------- */

/* A mask of truth becomes one that is added. Takes over `mask`. */
static struct tensor *additive(struct engine *engine, struct tensor *mask, enum dtype dtype)
{
    if (!mask || mask->dtype != DTYPE_BOOL) {
        return mask;
    }
    struct tensor *negated = tensor_like(engine, mask);
    struct tensor *result = tensor_new(engine, &mask->shape, dtype);
    tensor_drop(engine, negated);
    tensor_drop(engine, mask);
    return result;
}

/* Rows of a multiple of 8 elements, of which the last are not used. Takes over `mask`. */
static struct tensor *aligned(struct engine *engine, struct tensor *mask)
{
    int last = mask ? mask->shape.dims - 1 : 0;
    if (!mask || mask->shape.size[last] % 8 == 0) {
        return mask;
    }
    struct shape shape = mask->shape;
    shape.size[last] += 8 - shape.size[last] % 8;
    struct tensor *padded = tensor_new(engine, &shape, mask->dtype);
    struct tensor *result = op_narrow(engine, padded, last, mask->shape.size[last]);
    tensor_drop(engine, padded);
    tensor_drop(engine, mask);
    return result;
}

/* --- depths that flash attention pads ---------------------------------------------------- */

static void pad_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

static struct tensor *padded(struct engine *engine, struct tensor *a)
{
    struct shape shape = a->shape;
    int64_t rest = shape.size[DEPTH] % 8;
    if (rest == 0) {
        return tensor_keep(a);
    }
    shape.size[DEPTH] += 8 - rest;
    struct tensor *result = tensor_new(engine, &shape, a->dtype);
    node_drop(engine, node_over(engine, "ConstantPadNdBackward", pad_backward, a, result));
    return result;
}

static struct tensor *padded_flash(struct engine *engine, const call *of)
{
    struct tensor *inputs[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        inputs[i] = padded(engine, of->inputs[i]);
    }
    struct tensor *whole = flash_attention(engine, inputs, of->how);
    struct tensor *result = whole;
    if (size_of(of, QUERY, DEPTH) % 8 != 0) {
        result = op_narrow(engine, whole, DEPTH, size_of(of, QUERY, DEPTH));
        tensor_drop(engine, whole);
    }
    for (int i = 0; i < INPUTS; i++) {
        tensor_drop(engine, inputs[i]);
    }
    return result;
}

/* --- the mathematical one ---------------------------------------------------------------- */

/* Rows of which nothing is left by the mask are set to zero afterwards, in place. */
static struct tensor *safe_softmax(struct engine *engine, struct tensor *scores)
{
    static const struct shape scalar = {0, {0}};
    struct shape rows = scores->shape;
    rows.size[rows.dims - 1] = 1;
    struct tensor *result = op_softmax(engine, scores);
    struct tensor *masked = tensor_new(engine, &scores->shape, DTYPE_BOOL);
    struct tensor *masked_rows = tensor_new(engine, &rows, DTYPE_BOOL);
    struct tensor *zero = tensor_new(engine, &scalar, scores->dtype);
    tensor_drop(engine, zero);
    tensor_drop(engine, masked_rows);
    tensor_drop(engine, masked);
    return result;
}

static struct tensor *causal_mask(struct engine *engine, const call *of, enum dtype dtype)
{
    int last = of->inputs[QUERY]->shape.dims - 1;
    struct shape shape = {2, {size_of(of, QUERY, last - 1), size_of(of, KEY, last - 1)}};
    struct tensor *ones = tensor_new(engine, &shape, DTYPE_BOOL);
    struct tensor *lower = tensor_new(engine, &shape, DTYPE_BOOL);
    tensor_drop(engine, ones);
    return additive(engine, lower, dtype);
}

/* repeat_interleave along the heads: a copy of an expansion. Takes over `a`. */
static struct tensor *for_each_head(struct engine *engine, struct tensor *a, int64_t heads)
{
    int dimension = a ? a->shape.dims - 3 : 0;
    if (!a || a->shape.size[dimension] == heads) {
        return a;
    }
    struct shape flat = a->shape, wide;
    int64_t times = heads / a->shape.size[dimension];
    struct tensor *single = op_unsqueeze(engine, a, dimension + 1);
    wide = single->shape;
    wide.size[dimension + 1] = times;
    flat.size[dimension] = heads;
    struct tensor *many = op_expand(engine, single, &wide);
    struct tensor *copy = op_contiguous(engine, many);
    struct tensor *result = op_view_as_it_lies(engine, copy, &flat);
    struct tensor *const done[] = {copy, many, single, a};
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) {
        tensor_drop(engine, done[i]);
    }
    return result;
}

/* The scores: queries by keys, both scaled, and the mask added. */
static struct tensor *scores_of(struct engine *engine, struct tensor *query, struct tensor *key,
                                struct tensor *mask)
{
    int dims = key ? key->shape.dims : 2;
    struct tensor *turned = op_transpose(engine, key, dims - 2, dims - 1);
    struct tensor *scaled = op_scale(engine, turned);
    struct tensor *scores = op_bmm(engine, query, scaled);
    tensor_drop(engine, scaled);
    tensor_drop(engine, turned);
    if (mask && scores) {
        struct tensor *masked = op_add(engine, scores, mask, true);
        tensor_drop(engine, scores);
        scores = masked;
    }
    return scores;
}

/* Weights of the values; takes over `scores`. */
static struct tensor *weights_of(struct engine *engine, struct tensor *scores, double dropout)
{
    struct tensor *weights = scores ? safe_softmax(engine, scores) : NULL;
    tensor_drop(engine, scores);
    struct tensor *left = op_dropout(engine, weights, dropout);
    tensor_drop(engine, weights);
    return left;
}

/* What is in 16 bits is computed in 32, and the weights are converted back, though nobody asks for
 * them. */
static struct tensor *math_attention(struct engine *engine, const call *of, struct tensor *mask)
{
    enum dtype dtype = of->inputs[QUERY]->dtype, wide = is_narrow(of) ? DTYPE_FLOAT32 : dtype;
    int64_t heads = size_of(of, QUERY, of->inputs[QUERY]->shape.dims - 3);
    struct tensor *inputs[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        inputs[i] = op_cast(engine, of->inputs[i], wide);
    }
    struct tensor *query = op_scale(engine, inputs[QUERY]);
    mask = of->how->causal ? causal_mask(engine, of, wide) : tensor_keep(mask);
    for (int i = KEY; is_grouped(of) && i < INPUTS; i++) {
        inputs[i] = for_each_head(engine, inputs[i], heads);
    }
    struct tensor *scores = scores_of(engine, query, inputs[KEY], mask);
    struct tensor *weights = weights_of(engine, scores, of->how->dropout);
    struct tensor *unused = op_cast(engine, weights, dtype);
    struct tensor *sum = op_bmm(engine, weights, inputs[VALUE]);
    struct tensor *result = op_cast(engine, sum, dtype);
    struct tensor *const done[] = {sum,   unused,        weights,     mask,
                                   query, inputs[VALUE], inputs[KEY], inputs[QUERY]};
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) {
        tensor_drop(engine, done[i]);
    }
    return result;
}

/* --- all of it --------------------------------------------------------------------------- */

static bool mask_fits(struct engine *engine, const call *of)
{
    const struct tensor *mask = of->how->mask;
    char text[128];
    if (!mask) {
        return true;
    }
    int dims = of->inputs[QUERY]->shape.dims;
    struct shape scores = of->inputs[QUERY]->shape;
    scores.size[dims - 1] = size_of(of, KEY, dims - 2);
    if (of->how->causal) {
        engine_misuse(engine, "scaled_dot_product_attention: a mask, or is_causal");
    } else if (tensor_tracked(engine, mask)) {
        engine_misuse(engine,
                      "scaled_dot_product_attention: a mask that requires a gradient is not known");
    } else if (mask->dtype != DTYPE_BOOL && mask->dtype != of->inputs[QUERY]->dtype) {
        engine_misuse(engine, "scaled_dot_product_attention: the mask is bool or %s, here it is %s",
                      dtype_name(of->inputs[QUERY]->dtype), dtype_name(mask->dtype));
    } else if (mask->shape.dims < 2 || !shape_expands(&mask->shape, &scores)) {
        engine_misuse(engine, "scaled_dot_product_attention: a mask of %s does not fit the scores",
                      shape_text(&mask->shape, text));
    } else {
        return true;
    }
    return false;
}

static bool shapes_fit(struct engine *engine, const call *of)
{
    char text[INPUTS][128];
    const struct shape *query = &of->inputs[QUERY]->shape, *key = &of->inputs[KEY]->shape;
    const struct shape *value = &of->inputs[VALUE]->shape;
    int dims = query->dims;
    bool fits = dims >= 3 && key->dims == dims && value->dims == dims;
    for (int i = 0; fits && i < dims - 2; i++) {
        bool is_head = i == dims - 3 && of->how->grouped && key->size[i] > 0;
        fits = key->size[i] == value->size[i] &&
               (is_head ? query->size[i] % key->size[i] == 0 : query->size[i] == key->size[i]);
    }
    fits = fits && key->size[dims - 2] == value->size[dims - 2] &&
           query->size[dims - 1] == key->size[dims - 1];
    for (int i = KEY; i < INPUTS; i++) {
        fits = fits && of->inputs[i]->dtype == of->inputs[QUERY]->dtype;
    }
    if (!fits || !dtype_is_floating(of->inputs[QUERY]->dtype)) {
        engine_misuse(engine,
                      "scaled_dot_product_attention takes [batch, heads, length, depth] of one "
                      "floating type, and keys like values; the inputs are %s, %s and %s",
                      shape_text(query, text[0]), shape_text(key, text[1]),
                      shape_text(value, text[2]));
        return false;
    }
    return true;
}

static struct tensor *run_backend(struct engine *engine, const call *of,
                                  enum attention_backend backend)
{
    struct attention how = *of->how;
    struct tensor *mask = additive(engine, tensor_keep(how.mask), of->inputs[QUERY]->dtype);
    how.mask = mask;
    struct tensor *result = NULL;
    if (backend == ATTENTION_MATH) {
        result = math_attention(engine, of, mask);
    } else if (backend == ATTENTION_CUDNN) {
        result = cudnn_attention(engine, of->inputs, &how);
    } else if (backend == ATTENTION_FLASH) {
        result = padded_flash(engine, of);
    } else {
        how.mask = mask = aligned(engine, mask);
        result = efficient_attention(engine, of->inputs, &how);
    }
    tensor_drop(engine, mask);
    return result;
}

static struct tensor *attention(struct engine *engine, const call *of)
{
    if (!shapes_fit(engine, of) || !mask_fits(engine, of)) {
        return NULL;
    }
    enum attention_backend backend = chosen(engine, of);
    return backend == ATTENTION_BACKENDS ? NULL : run_backend(engine, of, backend);
}

struct tensor *op_attention(struct engine *engine, struct tensor *query, struct tensor *key,
                            struct tensor *value, const struct attention *how)
{
    if (!query || !key || !value) {
        return NULL;
    }
    struct attention narrow = *how;
    if (how->mask && how->mask->dtype != DTYPE_BOOL) {
        narrow.mask = autocast_argument(engine, "scaled_dot_product_attention", how->mask);
    } else {
        narrow.mask = tensor_keep(how->mask);
    }
    call of = {.how = &narrow};
    of.inputs[VALUE] = autocast_argument(engine, "scaled_dot_product_attention", value);
    of.inputs[KEY] = autocast_argument(engine, "scaled_dot_product_attention", key);
    of.inputs[QUERY] = autocast_argument(engine, "scaled_dot_product_attention", query);
    struct tensor *result = attention(engine, &of);
    for (int i = 0; i < INPUTS; i++) {
        tensor_drop(engine, of.inputs[i]);
    }
    tensor_drop(engine, narrow.mask);
    return result;
}
