/* model_transformer.c - torch.nn.TransformerEncoder, and the blocks of a GPT. */
#include "gmd_module.h"
#include "native_attention.h"

static int given(struct tensor *result, struct tensor *results[MODULE_MAX_RESULTS])
{
    results[0] = result;
    return result ? 1 : 0;
}

/* --- torch.nn.TransformerEncoderLayer, batch first, with dropout ------------------------- */

enum { ATTENTION, LINEAR1, DROPOUT, LINEAR2, NORM1, NORM2 };

/* Projects to queries, keys and values, attends, projects back. The copy of the input with the
 * length first is what the projection saves. */
static int attention_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                             int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    char text[128];
    if (inputs[0]->shape.dims != 3) {
        engine_misuse(engine, "a transformer takes [batch, length, features], the input is %s",
                      shape_text(&inputs[0]->shape, text));
        return 0;
    }
    struct tensor *by_length = op_swap(engine, inputs[0]);
    struct tensor *packed =
        op_linear(engine, by_length, module->parameters[0], module->parameters[1]);
    tensor_drop(engine, by_length);
    struct tensor *merged = op_self_attention(engine, packed, module->heads);
    struct tensor *projected = module_pass(engine, module->children[0], merged);
    struct tensor *result = op_transpose(engine, projected, 0, 1);
    tensor_drop(engine, projected);
    if (result) {
        result->transposed = false; /* elementwise kernels read it as it lies */
    }
    return given(result, results);
}

static struct module *attention(struct engine *engine, int64_t features, int64_t heads)
{
    struct module *module = module_new(engine, "MultiheadAttention", attention_forward);
    module->heads = heads;
    module_child(engine, module, nn_linear(engine, features, features, true));
    module_parameter(engine, module, (struct shape){2, {3 * features, features}});
    module_parameter(engine, module, (struct shape){1, {3 * features}});
    return module;
}

/* Takes over `x`: in Python its name is bound to what the second linear gives, before the dropout.
 */
static struct tensor *feed_forward(struct engine *engine, struct module *module, struct tensor *x)
{
    struct module **part = module->children;
    struct tensor *hidden = module_apply(engine, part[LINEAR1], x);
    struct tensor *active = module->gelu ? op_activation(engine, ACTIVATION_GELU, hidden)
                                         : op_relu(engine, hidden, false);
    tensor_drop(engine, hidden);
    active = module_pass(engine, part[DROPOUT], active);
    active = module_pass(engine, part[LINEAR2], active);
    tensor_drop(engine, x);
    return module_pass(engine, part[DROPOUT], active);
}

/* x + branch; drops the branch. */
static struct tensor *added(struct engine *engine, struct tensor *x, struct tensor *branch)
{
    struct tensor *sum = op_add(engine, x, branch, false);
    tensor_drop(engine, branch);
    return sum;
}

static struct tensor *attended(struct engine *engine, struct module *module, struct tensor *x)
{
    struct tensor *branch = module_apply(engine, module->children[ATTENTION], x);
    return module_pass(engine, module->children[DROPOUT], branch);
}

static struct tensor *normalise_last(struct engine *engine, struct module *module,
                                     struct tensor *input)
{
    struct module **part = module->children;
    struct tensor *x = added(engine, input, attended(engine, module, input));
    x = module_pass(engine, part[NORM1], x);
    struct tensor *branch = x ? feed_forward(engine, module, tensor_keep(x)) : NULL;
    struct tensor *result = module_pass(engine, part[NORM2], added(engine, x, branch));
    tensor_drop(engine, x);
    return result;
}

static struct tensor *normalise_first(struct engine *engine, struct module *module,
                                      struct tensor *input)
{
    struct module **part = module->children;
    struct tensor *normal = module_apply(engine, part[NORM1], input);
    struct tensor *branch = normal ? module_apply(engine, part[ATTENTION], normal) : NULL;
    tensor_drop(engine, normal);
    branch = module_pass(engine, part[DROPOUT], branch);
    struct tensor *x = added(engine, input, branch);
    normal = module_apply(engine, part[NORM2], x);
    branch = normal ? feed_forward(engine, module, normal) : NULL;
    struct tensor *result = added(engine, x, branch);
    tensor_drop(engine, x);
    return result;
}

/* x + from, in place; takes over `x`. */
static struct tensor *added_to(struct engine *engine, struct tensor *x, struct tensor *from)
{
    struct tensor *sum = op_add(engine, x, from, true);
    tensor_drop(engine, x);
    return sum;
}

/* The whole layer in one call, in evaluation. Facts: transformer_encoder_layer_forward() in
 * ATen/native/transformers/transformer.cpp. The activation is in place. */
static struct tensor *native_layer(struct engine *engine, struct module *module,
                                   struct tensor *input)
{
    struct module **part = module->children;
    bool first = module->norm_first;
    struct tensor *from = first ? module_apply(engine, part[NORM1], input) : tensor_keep(input);
    struct tensor *x = native_attention(engine, part[ATTENTION], from, NULL);
    tensor_drop(engine, from);
    x = added_to(engine, x, input);
    x = first ? x : module_pass(engine, part[NORM1], x);
    struct tensor *normal = first ? module_apply(engine, part[NORM2], x) : tensor_keep(x);
    struct tensor *made = module_apply(engine, part[LINEAR1], normal);
    made = module_pass(engine, part[LINEAR2], made);
    tensor_drop(engine, normal);
    made = added_to(engine, made, x);
    made = first ? made : module_pass(engine, part[NORM2], made);
    tensor_drop(engine, x);
    return made;
}

static struct tensor *layer_of(struct engine *engine, struct module *module, struct tensor *input)
{
    if (native_is_taken(engine, module, module->children[ATTENTION], input)) {
        return native_layer(engine, module, input);
    }
    return module->norm_first ? normalise_first(engine, module, input)
                              : normalise_last(engine, module, input);
}

static int transformer_layer_forward(struct engine *engine, struct module *module,
                                     struct tensor **inputs, int count,
                                     struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return given(layer_of(engine, module, inputs[0]), results);
}

struct module *nn_encoder_layer(struct engine *engine, const struct encoder *shape)
{
    struct module *module =
        module_new(engine, "TransformerEncoderLayer", transformer_layer_forward);
    module->gelu = shape->gelu;
    module->norm_first = shape->norm_first;
    module_child(engine, module, attention(engine, shape->features, shape->heads));
    module_child(engine, module, nn_linear(engine, shape->features, shape->hidden, true));
    module_child(engine, module, nn_dropout(engine, shape->dropout));
    module_child(engine, module, nn_linear(engine, shape->hidden, shape->features, true));
    module_child(engine, module, nn_layer_norm(engine, shape->features));
    module_child(engine, module, nn_layer_norm(engine, shape->features));
    return module;
}

struct module *nn_transformer(struct engine *engine, const struct encoder *shape)
{
    struct module *model = nn_sequential(engine, NULL, 0);
    for (int64_t i = 0; i < shape->layers; i++) {
        module_child(engine, model, nn_encoder_layer(engine, shape));
    }
    return model;
}

/* --- GPT: normalisation first, no dropout ------------------------------------------------ */

enum { GPT_NORM1, GPT_NORM2, GPT_ATTENTION, GPT_EXPAND, GPT_CONTRACT };

/* h = ln1(x); x = x + attention(h); return x + mlp(ln2(x)) */
static int gpt_block_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                             int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    struct module **part = module->children;
    struct tensor *h = module_apply(engine, part[GPT_NORM1], inputs[0]);
    struct tensor *attended = module_apply(engine, part[GPT_ATTENTION], h);
    struct tensor *x = op_add(engine, inputs[0], attended, false);
    tensor_drop(engine, attended);
    struct tensor *normal = module_apply(engine, part[GPT_NORM2], x);
    struct tensor *wide = module_apply(engine, part[GPT_EXPAND], normal);
    struct tensor *active = op_activation(engine, ACTIVATION_GELU, wide);
    tensor_drop(engine, wide);
    struct tensor *branch = module_pass(engine, part[GPT_CONTRACT], active);
    tensor_drop(engine, normal);
    struct tensor *sum = op_add(engine, x, branch, false);
    tensor_drop(engine, branch);
    tensor_drop(engine, x);
    tensor_drop(engine, h); /* a variable of the function */
    return given(sum, results);
}

struct module *nn_gpt_block(struct engine *engine, int64_t features, int64_t heads)
{
    struct module *module = module_new(engine, "GPTBlock", gpt_block_forward);
    module_child(engine, module, nn_layer_norm(engine, features));
    module_child(engine, module, nn_layer_norm(engine, features));
    module_child(engine, module, attention(engine, features, heads));
    module_child(engine, module, nn_linear(engine, features, 4 * features, true));
    module_child(engine, module, nn_linear(engine, 4 * features, features, true));
    return module;
}

/* --- a GPT as nanoGPT writes it: one projection, split into views ------------------------ */

enum { CAUSAL_NORM1, CAUSAL_QKV, CAUSAL_PROJECTION, CAUSAL_NORM2, CAUSAL_EXPAND, CAUSAL_CONTRACT };

/* part(norm(x)) */
static struct tensor *normal_to(struct engine *engine, struct module *norm, struct module *layer,
                                struct tensor *x)
{
    return module_pass(engine, layer, module_apply(engine, norm, x));
}

static int causal_block_forward(struct engine *engine, struct module *module,
                                struct tensor **inputs, int count,
                                struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    struct module **part = module->children;
    struct tensor *packed = normal_to(engine, part[CAUSAL_NORM1], part[CAUSAL_QKV], inputs[0]);
    struct tensor *y = op_split_attention(engine, packed, module->heads);
    struct tensor *projected = module_apply(engine, part[CAUSAL_PROJECTION], y);
    struct tensor *x = added(engine, inputs[0], projected);
    struct tensor *wide = normal_to(engine, part[CAUSAL_NORM2], part[CAUSAL_EXPAND], x);
    struct tensor *active = op_activation(engine, ACTIVATION_GELU, wide);
    tensor_drop(engine, wide);
    struct tensor *branch = module_pass(engine, part[CAUSAL_CONTRACT], active);
    struct tensor *sum = added(engine, x, branch);
    struct tensor *variables[] = {x, y, packed};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        tensor_drop(engine, variables[i]);
    }
    return given(sum, results);
}

struct module *nn_causal_block(struct engine *engine, int64_t features, int64_t heads)
{
    struct module *module = module_new(engine, "CausalBlock", causal_block_forward);
    module->heads = heads;
    module_child(engine, module, nn_layer_norm(engine, features));
    module_child(engine, module, nn_linear(engine, features, 3 * features, true));
    module_child(engine, module, nn_linear(engine, features, features, true));
    module_child(engine, module, nn_layer_norm(engine, features));
    module_child(engine, module, nn_linear(engine, features, 4 * features, true));
    module_child(engine, module, nn_linear(engine, 4 * features, features, true));
    return module;
}

/* words(tokens) + positions(arange(length)) */
static int embedded_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                            int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    char text[128];
    if (inputs[0]->shape.dims != 2) {
        engine_misuse(engine, "gpt takes tokens, [batch, length]; the input is %s",
                      shape_text(&inputs[0]->shape, text));
        return 0;
    }
    struct tensor *words = module_apply(engine, module->children[0], inputs[0]);
    struct shape length = {1, {inputs[0]->shape.size[1]}};
    struct tensor *range = tensor_new(engine, &length, DTYPE_INT64);
    struct tensor *positions = module_pass(engine, module->children[1], range);
    struct tensor *sum = op_add(engine, words, positions, false);
    tensor_drop(engine, positions);
    tensor_drop(engine, words);
    return given(sum, results);
}

static struct module *embedding(struct engine *engine, const struct gpt *shape)
{
    struct module *words = nn_embedding(engine, shape->vocabulary, shape->features);
    if (shape->positions == 0) {
        return words;
    }
    struct module *module = module_new(engine, "Embedded", embedded_forward);
    module_child(engine, module, words);
    module_child(engine, module, nn_embedding(engine, shape->positions, shape->features));
    return module;
}

struct module *nn_gpt(struct engine *engine, const struct gpt *shape)
{
    struct module *model = nn_sequential(engine, NULL, 0);
    module_child(engine, model, embedding(engine, shape));
    for (int64_t i = 0; i < shape->layers; i++) {
        struct module *block = shape->causal
                                   ? nn_causal_block(engine, shape->features, shape->heads)
                                   : nn_gpt_block(engine, shape->features, shape->heads);
        module_child(engine, model, shape->checkpoint ? nn_checkpointed(engine, block) : block);
    }
    module_child(engine, model, nn_linear(engine, shape->features, shape->vocabulary, false));
    return model;
}
