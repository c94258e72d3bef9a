/* native_attention.c - self-attention in evaluation. Facts: the conditions in
 * torch/nn/modules/activation.py and transformer.py, native_multi_head_attention_cuda() in
 * ATen/native/transformers/cuda/attention.cu. */
#include "native_attention.h"

#include "gmd_dot_attention.h"

enum { WEIGHT, BIAS };
enum { PROJECTION }; /* child */
enum { QUERY, KEY, VALUE, INPUTS };
enum { BATCH, LENGTH, FEATURES };

/* --- the conditions ---------------------------------------------------------------------- */

typedef struct obstacles {
    struct engine *engine;
    bool any;
} obstacles;

static void look_for_gradients(struct module *module, void *context)
{
    obstacles *found = context;
    found->any = found->any || module->training || module->sharded;
    for (size_t i = 0; i < module->parameter_count; i++) {
        found->any = found->any || tensor_tracked(found->engine, module->parameters[i]);
    }
}

bool native_is_taken(struct engine *engine, struct module *module, const struct module *attention,
                     struct tensor *input)
{
    obstacles found = {.engine = engine, .any = engine->autocast || tensor_tracked(engine, input)};
    bool can = attention->parameter_count > BIAS && attention->heads % 2 == 0 &&
               input->shape.dims == 3 && shape_count(&input->shape) > 0;
    if (can && !found.any) {
        module_each(engine, module, look_for_gradients, &found);
    }
    return can && !found.any;
}

/* --- with a kernel ----------------------------------------------------------------------- */

/* [batch, length, features] as [batch, heads, length, depth]; takes over `part`. */
static struct tensor *by_heads(struct engine *engine, struct tensor *part, int64_t heads)
{
    struct shape apart = {4, {0}};
    if (!part) {
        return NULL;
    }
    apart.size[0] = part->shape.size[BATCH];
    apart.size[1] = part->shape.size[LENGTH];
    apart.size[2] = heads;
    apart.size[3] = part->shape.size[FEATURES] / heads;
    struct tensor *view = op_view_as_it_lies(engine, part, &apart);
    struct tensor *result = op_transpose(engine, view, 1, 2);
    tensor_drop(engine, view);
    tensor_drop(engine, part);
    return result;
}

/* This call knows nothing of cuDNN's kernel, which scaled_dot_product_attention() prefers. */
static bool has_kernel(struct engine *engine, const struct module *attention, struct tensor *input)
{
    if (input->shape.size[FEATURES] / attention->heads % 8 != 0) {
        return false;
    }
    struct tensor *view = by_heads(engine, tensor_keep(input), attention->heads);
    enum attention_backend backend = attention_backend_of(view);
    tensor_drop(engine, view);
    return backend == ATTENTION_FLASH || backend == ATTENTION_EFFICIENT;
}

static struct tensor *with_kernel(struct engine *engine, const struct module *attention,
                                  struct tensor *input)
{
    const int64_t features = input->shape.size[FEATURES];
    const int64_t sizes[INPUTS] = {features, features, features};
    const struct attention how = {.backend = ATTENTION_ANY};
    const struct module *last = attention->children[PROJECTION];
    struct tensor *parts[INPUTS] = {NULL};
    struct tensor *packed =
        op_linear(engine, input, attention->parameters[WEIGHT], attention->parameters[BIAS]);
    op_split(engine, packed, FEATURES, sizes, INPUTS, parts);
    for (int i = 0; i < INPUTS; i++) {
        parts[i] = by_heads(engine, parts[i], attention->heads);
    }
    struct tensor *out = op_attention(engine, parts[QUERY], parts[KEY], parts[VALUE], &how);
    struct tensor *turned = op_transpose(engine, out, 1, 2);
    struct tensor *joined = turned ? op_reshape_or_copy(engine, turned, &input->shape) : NULL;
    tensor_drop(engine, turned);
    struct tensor *result =
        op_linear(engine, joined, last->parameters[WEIGHT], last->parameters[BIAS]);
    struct tensor *const done[] = {joined, out, parts[QUERY], parts[KEY], parts[VALUE], packed};
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) {
        tensor_drop(engine, done[i]);
    }
    return result;
}

/* --- written out ------------------------------------------------------------------------- */

/* Queries, keys and values with their biases, in one block: [3 * batch * heads, length, depth]. */
static struct tensor *projections(struct engine *engine, const struct module *attention,
                                  struct tensor *input)
{
    const struct shape *from = &input->shape;
    struct shape shape = {3,
                          {INPUTS * from->size[BATCH] * attention->heads, from->size[LENGTH],
                           from->size[FEATURES] / attention->heads}};
    struct tensor *packed = op_linear(engine, input, attention->parameters[WEIGHT], NULL);
    struct tensor *result = tensor_new(engine, &shape, input->dtype);
    tensor_drop(engine, packed);
    return result;
}

/* The softmax is in place. */
static struct tensor *attention_weights(struct engine *engine, struct tensor *all)
{
    struct tensor *query = op_narrow(engine, all, 0, all->shape.size[0] / INPUTS);
    struct tensor *keys = op_transpose(engine, query, 1, 2);
    struct tensor *scores = op_bmm(engine, query, keys);
    tensor_drop(engine, keys);
    tensor_drop(engine, query);
    return scores;
}

/* Their sums lie where the queries lay; a copy has the heads of a token together. */
static struct tensor *projected(struct engine *engine, const struct module *attention,
                                struct tensor *input)
{
    const struct module *last = attention->children[PROJECTION];
    struct tensor *copy = tensor_new(engine, &input->shape, input->dtype);
    struct tensor *result =
        op_linear(engine, copy, last->parameters[WEIGHT], last->parameters[BIAS]);
    tensor_drop(engine, copy);
    return result;
}

/* Takes over `weights`; what is divided by the number of heads is divided in place. */
static struct tensor *mean_of_heads(struct engine *engine, const struct module *attention,
                                    struct tensor *weights)
{
    struct shape apart = {4,
                          {weights->shape.size[0] / attention->heads, attention->heads,
                           weights->shape.size[1], weights->shape.size[2]}};
    struct tensor *view = op_view_as_it_lies(engine, weights, &apart);
    struct tensor *sum = op_sum(engine, view, 1u << 1, false);
    tensor_drop(engine, view);
    tensor_drop(engine, weights);
    return sum;
}

struct tensor *native_attention(struct engine *engine, const struct module *attention,
                                struct tensor *input, struct tensor **weights)
{
    if (!weights && has_kernel(engine, attention, input)) {
        return with_kernel(engine, attention, input);
    }
    struct tensor *all = projections(engine, attention, input);
    struct tensor *scores = attention_weights(engine, all);
    if (!weights) {
        tensor_drop(engine, scores);
    }
    struct tensor *result = projected(engine, attention, input);
    if (weights) {
        *weights = mean_of_heads(engine, attention, scores);
    }
    tensor_drop(engine, all);
    return result;
}
