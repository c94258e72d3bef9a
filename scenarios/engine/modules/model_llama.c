/* model_llama.c - a block of a Llama-like decoder. The order of what is computed is that of
 * LlamaBlock in tests/scenarios/twins/prelude.py. */
#include "gmd_dot_attention.h"
#include "gmd_module.h"

enum { NORM1, QUERY, KEY, VALUE, OUT, NORM2, GATE, UP, DOWN };
enum { COSINE, SINE };

static void drop_all(struct engine *engine, struct tensor *const tensors[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tensor_drop(engine, tensors[i]);
    }
}

/* [batch, length, heads * depth] as [batch, heads, length, depth]. */
static struct tensor *by_heads(struct engine *engine, struct module *part, struct tensor *x,
                               int64_t depth)
{
    struct tensor *flat = module_apply(engine, part, x);
    if (!flat) {
        return NULL;
    }
    const int64_t *size = flat->shape.size;
    struct shape apart = {4, {size[0], size[1], size[2] / depth, depth}};
    struct tensor *view = op_view_as_it_lies(engine, flat, &apart);
    struct tensor *result = op_transpose(engine, view, 1, 2);
    tensor_drop(engine, view);
    tensor_drop(engine, flat);
    return result;
}

/* x * cosine + cat(-second, first) * sine, of its halves. */
static struct tensor *rotate(struct engine *engine, struct tensor *x, struct tensor *const wave[2])
{
    struct tensor *halves[2] = {NULL};
    if (!x) {
        return NULL;
    }
    int64_t half = x->shape.size[3] / 2;
    const int64_t sizes[2] = {half, half};
    op_split(engine, x, 3, sizes, 2, halves);
    struct tensor *straight = op_mul(engine, x, wave[COSINE], false);
    struct tensor *turned[2] = {op_scale(engine, halves[1]), halves[0]};
    struct tensor *joined = turned[0] && turned[1] ? op_cat(engine, turned, 2, 3) : NULL;
    tensor_drop(engine, turned[0]);
    struct tensor *across = op_mul(engine, joined, wave[SINE], false);
    tensor_drop(engine, joined);
    struct tensor *sum = op_add(engine, straight, across, false);
    struct tensor *const done[] = {straight, across, halves[0], halves[1]};
    drop_all(engine, done, 4);
    return sum;
}

static struct tensor *rotated_attention(struct engine *engine, struct module *block,
                                        struct tensor *const parts[3], struct tensor *const wave[2])
{
    struct attention how = {
        .causal = true, .grouped = block->size[0] != block->heads, .backend = ATTENTION_ANY};
    struct tensor *query = rotate(engine, parts[0], wave), *key = rotate(engine, parts[1], wave);
    struct tensor *result = op_attention(engine, query, key, parts[2], &how);
    tensor_drop(engine, query);
    tensor_drop(engine, key);
    return result;
}

/* [batch, heads, length, depth] as [batch, length, heads * depth], in rows. */
static struct tensor *joined_heads(struct engine *engine, struct tensor *y)
{
    struct tensor *turned = op_transpose(engine, y, 1, 2);
    if (!turned) {
        return NULL;
    }
    const int64_t *size = turned->shape.size;
    struct shape flat = {3, {size[0], size[1], size[2] * size[3]}};
    struct tensor *result = op_reshape_or_copy(engine, turned, &flat);
    tensor_drop(engine, turned);
    return result;
}

static struct tensor *attend(struct engine *engine, struct module *block, struct tensor *x)
{
    struct tensor *parts[3], *wave[2];
    if (!x) {
        return NULL;
    }
    for (int i = 0; i < 3; i++) {
        parts[i] = by_heads(engine, block->children[QUERY + i], x, block->size[1]);
    }
    for (int i = 0; i < 2; i++) {
        wave[i] = op_cast(engine, block->buffers[i], x->dtype);
    }
    struct tensor *y = rotated_attention(engine, block, parts, wave);
    struct tensor *result = module_pass(engine, block->children[OUT], joined_heads(engine, y));
    tensor_drop(engine, y);
    drop_all(engine, wave, 2);
    drop_all(engine, parts, 3);
    return result;
}

static struct tensor *feed_forward(struct engine *engine, struct module *block, struct tensor *x)
{
    struct tensor *gate = module_apply(engine, block->children[GATE], x);
    struct tensor *open = op_activation(engine, ACTIVATION_SILU, gate);
    tensor_drop(engine, gate);
    struct tensor *up = module_apply(engine, block->children[UP], x);
    struct tensor *through = op_mul(engine, open, up, false);
    tensor_drop(engine, open);
    tensor_drop(engine, up);
    return module_pass(engine, block->children[DOWN], through);
}

typedef struct tensor *branch_fn(struct engine *engine, struct module *block, struct tensor *x);

/* x + branch(norm(x)) */
static struct tensor *added(struct engine *engine, struct module *block, int norm,
                            branch_fn *branch, struct tensor *x)
{
    struct tensor *normal = module_apply(engine, block->children[norm], x);
    struct tensor *made = branch(engine, block, normal);
    tensor_drop(engine, normal);
    struct tensor *sum = op_add(engine, x, made, false);
    tensor_drop(engine, made);
    return sum;
}

static int llama_forward(struct engine *engine, struct module *block, struct tensor **inputs,
                         int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    char text[128];
    (void)count;
    if (inputs[0]->shape.dims != 3) {
        engine_misuse(engine, "LlamaBlock takes [batch, length, features], the input is %s",
                      shape_text(&inputs[0]->shape, text));
        return 0;
    }
    struct tensor *x = added(engine, block, NORM1, attend, inputs[0]);
    results[0] = added(engine, block, NORM2, feed_forward, x);
    tensor_drop(engine, x);
    return results[0] ? 1 : 0;
}

struct module *nn_llama_block(struct engine *engine, const struct llama_block *shape)
{
    struct module *block = module_new(engine, "LlamaBlock", llama_forward);
    int64_t features = shape->features, depth = features / shape->heads;
    int64_t grouped = shape->groups * depth;
    const int64_t widths[][2] = {{features, features},
                                 {features, grouped},
                                 {features, grouped},
                                 {features, features},
                                 {0, 0},
                                 {features, shape->hidden},
                                 {features, shape->hidden},
                                 {shape->hidden, features}};
    block->heads = shape->heads;
    block->size[0] = shape->groups;
    block->size[1] = depth;
    module_child(engine, block, nn_rms_norm(engine, features));
    for (int part = QUERY; part <= DOWN; part++) {
        const int64_t *width = widths[part - QUERY];
        module_child(engine, block,
                     part == NORM2 ? nn_rms_norm(engine, features)
                                   : nn_linear(engine, width[0], width[1], false));
    }
    for (int i = COSINE; i <= SINE; i++) {
        module_buffer(engine, block, (struct shape){2, {shape->length, depth}}, DTYPE_FLOAT32);
    }
    return block;
}
