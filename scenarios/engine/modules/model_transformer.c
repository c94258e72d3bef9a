/* model_transformer.c - torch.nn.TransformerEncoder, and the blocks of a GPT. */
#include "gmd_module.h"

static int given(gmd_tensor *result, gmd_tensor *results[GMD_MAX_RESULTS])
{
    results[0] = result;
    return result ? 1 : 0;
}

/* --- torch.nn.TransformerEncoderLayer, batch first, with dropout ------------------------- */

enum { ATTENTION, LINEAR1, DROPOUT, LINEAR2, NORM1, NORM2 };

/* Projects to queries, keys and values, attends, projects back. The copy of the input with the
 * length first is what the projection saves. */
static int attention_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                             gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    char text[128];
    if (inputs[0]->shape.dims != 3) {
        gmd_misuse(engine, "a transformer takes [batch, length, features], the input is %s",
                   gmd_shape_text(&inputs[0]->shape, text));
        return 0;
    }
    gmd_tensor *by_length = gmd_op_swap(engine, inputs[0]);
    gmd_tensor *packed =
        gmd_op_linear(engine, by_length, module->parameters[0], module->parameters[1]);
    gmd_tensor_drop(engine, by_length);
    gmd_tensor *merged = gmd_op_self_attention(engine, packed, module->heads);
    gmd_tensor *projected = gmd_module_pass(engine, module->children[0], merged);
    gmd_tensor *result = gmd_op_transpose(engine, projected, 0, 1);
    gmd_tensor_drop(engine, projected);
    if (result) {
        result->transposed = false; /* elementwise kernels read it as it lies */
    }
    return given(result, results);
}

static gmd_module *attention(gmd_engine *engine, int64_t features, int64_t heads)
{
    gmd_module *module = gmd_module_new(engine, "MultiheadAttention", attention_forward);
    module->heads = heads;
    gmd_module_child(engine, module, gmd_nn_linear(engine, features, features, true));
    gmd_module_parameter(engine, module, (gmd_shape){2, {3 * features, features}});
    gmd_module_parameter(engine, module, (gmd_shape){1, {3 * features}});
    return module;
}

static gmd_tensor *feed_forward(gmd_engine *engine, gmd_module *module, gmd_tensor *x)
{
    gmd_module **part = module->children;
    gmd_tensor *hidden = gmd_module_apply(engine, part[LINEAR1], x);
    gmd_tensor *active = module->gelu ? gmd_op_activation(engine, GMD_GELU, hidden)
                                      : gmd_op_relu(engine, hidden, false);
    gmd_tensor_drop(engine, hidden);
    active = gmd_module_pass(engine, part[DROPOUT], active);
    active = gmd_module_pass(engine, part[LINEAR2], active);
    return gmd_module_pass(engine, part[DROPOUT], active);
}

/* x + branch; drops the branch. */
static gmd_tensor *added(gmd_engine *engine, gmd_tensor *x, gmd_tensor *branch)
{
    gmd_tensor *sum = gmd_op_add(engine, x, branch, false);
    gmd_tensor_drop(engine, branch);
    return sum;
}

static gmd_tensor *attended(gmd_engine *engine, gmd_module *module, gmd_tensor *x)
{
    gmd_tensor *branch = gmd_module_apply(engine, module->children[ATTENTION], x);
    return gmd_module_pass(engine, module->children[DROPOUT], branch);
}

static gmd_tensor *normalise_last(gmd_engine *engine, gmd_module *module, gmd_tensor *input)
{
    gmd_module **part = module->children;
    gmd_tensor *x = added(engine, input, attended(engine, module, input));
    x = gmd_module_pass(engine, part[NORM1], x);
    gmd_tensor *branch = x ? feed_forward(engine, module, x) : NULL;
    gmd_tensor *result = gmd_module_pass(engine, part[NORM2], added(engine, x, branch));
    gmd_tensor_drop(engine, x);
    return result;
}

static gmd_tensor *normalise_first(gmd_engine *engine, gmd_module *module, gmd_tensor *input)
{
    gmd_module **part = module->children;
    gmd_tensor *normal = gmd_module_apply(engine, part[NORM1], input);
    gmd_tensor *branch = normal ? gmd_module_apply(engine, part[ATTENTION], normal) : NULL;
    gmd_tensor_drop(engine, normal);
    branch = gmd_module_pass(engine, part[DROPOUT], branch);
    gmd_tensor *x = added(engine, input, branch);
    normal = gmd_module_apply(engine, part[NORM2], x);
    branch = normal ? feed_forward(engine, module, normal) : NULL;
    gmd_tensor_drop(engine, normal);
    gmd_tensor *result = added(engine, x, branch);
    gmd_tensor_drop(engine, x);
    return result;
}

static int transformer_layer_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs,
                                     int count, gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    return given(module->norm_first ? normalise_first(engine, module, inputs[0])
                                    : normalise_last(engine, module, inputs[0]),
                 results);
}

static gmd_module *transformer_layer(gmd_engine *engine, const gmd_encoder *shape)
{
    gmd_module *module =
        gmd_module_new(engine, "TransformerEncoderLayer", transformer_layer_forward);
    module->gelu = shape->gelu;
    module->norm_first = shape->norm_first;
    gmd_module_child(engine, module, attention(engine, shape->features, shape->heads));
    gmd_module_child(engine, module, gmd_nn_linear(engine, shape->features, shape->hidden, true));
    gmd_module_child(engine, module, gmd_nn_dropout(engine));
    gmd_module_child(engine, module, gmd_nn_linear(engine, shape->hidden, shape->features, true));
    gmd_module_child(engine, module, gmd_nn_layer_norm(engine, shape->features));
    gmd_module_child(engine, module, gmd_nn_layer_norm(engine, shape->features));
    return module;
}

gmd_module *gmd_nn_transformer(gmd_engine *engine, const gmd_encoder *shape)
{
    gmd_module *model = gmd_nn_sequential(engine, NULL, 0);
    for (int64_t i = 0; i < shape->layers; i++) {
        gmd_module_child(engine, model, transformer_layer(engine, shape));
    }
    return model;
}

/* --- GPT: normalisation first, no dropout ------------------------------------------------ */

enum { GPT_NORM1, GPT_NORM2, GPT_ATTENTION, GPT_EXPAND, GPT_CONTRACT };

/* h = ln1(x); x = x + attention(h); return x + mlp(ln2(x)) */
static int gpt_block_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                             gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    gmd_module **part = module->children;
    gmd_tensor *h = gmd_module_apply(engine, part[GPT_NORM1], inputs[0]);
    gmd_tensor *attended = gmd_module_apply(engine, part[GPT_ATTENTION], h);
    gmd_tensor *x = gmd_op_add(engine, inputs[0], attended, false);
    gmd_tensor_drop(engine, attended);
    gmd_tensor *normal = gmd_module_apply(engine, part[GPT_NORM2], x);
    gmd_tensor *wide = gmd_module_apply(engine, part[GPT_EXPAND], normal);
    gmd_tensor *active = gmd_op_activation(engine, GMD_GELU, wide);
    gmd_tensor_drop(engine, wide);
    gmd_tensor *branch = gmd_module_pass(engine, part[GPT_CONTRACT], active);
    gmd_tensor_drop(engine, normal);
    gmd_tensor *sum = gmd_op_add(engine, x, branch, false);
    gmd_tensor_drop(engine, branch);
    gmd_tensor_drop(engine, x);
    gmd_tensor_drop(engine, h); /* a variable of the function */
    return given(sum, results);
}

gmd_module *gmd_nn_gpt_block(gmd_engine *engine, int64_t features, int64_t heads)
{
    gmd_module *module = gmd_module_new(engine, "GPTBlock", gpt_block_forward);
    gmd_module_child(engine, module, gmd_nn_layer_norm(engine, features));
    gmd_module_child(engine, module, gmd_nn_layer_norm(engine, features));
    gmd_module_child(engine, module, attention(engine, features, heads));
    gmd_module_child(engine, module, gmd_nn_linear(engine, features, 4 * features, true));
    gmd_module_child(engine, module, gmd_nn_linear(engine, 4 * features, features, true));
    return module;
}

/* --- a GPT as nanoGPT writes it: one projection, split into views ------------------------ */

enum { CAUSAL_NORM1, CAUSAL_QKV, CAUSAL_PROJECTION, CAUSAL_NORM2, CAUSAL_EXPAND, CAUSAL_CONTRACT };

/* part(norm(x)) */
static gmd_tensor *normal_to(gmd_engine *engine, gmd_module *norm, gmd_module *layer, gmd_tensor *x)
{
    return gmd_module_pass(engine, layer, gmd_module_apply(engine, norm, x));
}

static int causal_block_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs,
                                int count, gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    gmd_module **part = module->children;
    gmd_tensor *packed = normal_to(engine, part[CAUSAL_NORM1], part[CAUSAL_QKV], inputs[0]);
    gmd_tensor *y = gmd_op_split_attention(engine, packed, module->heads);
    gmd_tensor *projected = gmd_module_apply(engine, part[CAUSAL_PROJECTION], y);
    gmd_tensor *x = added(engine, inputs[0], projected);
    gmd_tensor *wide = normal_to(engine, part[CAUSAL_NORM2], part[CAUSAL_EXPAND], x);
    gmd_tensor *active = gmd_op_activation(engine, GMD_GELU, wide);
    gmd_tensor_drop(engine, wide);
    gmd_tensor *branch = gmd_module_pass(engine, part[CAUSAL_CONTRACT], active);
    gmd_tensor *sum = added(engine, x, branch);
    gmd_tensor *variables[] = {x, y, packed};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        gmd_tensor_drop(engine, variables[i]);
    }
    return given(sum, results);
}

gmd_module *gmd_nn_causal_block(gmd_engine *engine, int64_t features, int64_t heads)
{
    gmd_module *module = gmd_module_new(engine, "CausalBlock", causal_block_forward);
    module->heads = heads;
    gmd_module_child(engine, module, gmd_nn_layer_norm(engine, features));
    gmd_module_child(engine, module, gmd_nn_linear(engine, features, 3 * features, true));
    gmd_module_child(engine, module, gmd_nn_linear(engine, features, features, true));
    gmd_module_child(engine, module, gmd_nn_layer_norm(engine, features));
    gmd_module_child(engine, module, gmd_nn_linear(engine, features, 4 * features, true));
    gmd_module_child(engine, module, gmd_nn_linear(engine, 4 * features, features, true));
    return module;
}

/* words(tokens) + positions(arange(length)) */
static int embedded_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                            gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    char text[128];
    if (inputs[0]->shape.dims != 2) {
        gmd_misuse(engine, "gpt takes tokens, [batch, length]; the input is %s",
                   gmd_shape_text(&inputs[0]->shape, text));
        return 0;
    }
    gmd_tensor *words = gmd_module_apply(engine, module->children[0], inputs[0]);
    gmd_shape length = {1, {inputs[0]->shape.size[1]}};
    gmd_tensor *range = gmd_tensor_new(engine, &length, GMD_INT64);
    gmd_tensor *positions = gmd_module_pass(engine, module->children[1], range);
    gmd_tensor *sum = gmd_op_add(engine, words, positions, false);
    gmd_tensor_drop(engine, positions);
    gmd_tensor_drop(engine, words);
    return given(sum, results);
}

static gmd_module *embedding(gmd_engine *engine, const gmd_gpt *shape)
{
    gmd_module *words = gmd_nn_embedding(engine, shape->vocabulary, shape->features);
    if (shape->positions == 0) {
        return words;
    }
    gmd_module *module = gmd_module_new(engine, "Embedded", embedded_forward);
    gmd_module_child(engine, module, words);
    gmd_module_child(engine, module, gmd_nn_embedding(engine, shape->positions, shape->features));
    return module;
}

gmd_module *gmd_nn_gpt(gmd_engine *engine, const gmd_gpt *shape)
{
    gmd_module *model = gmd_nn_sequential(engine, NULL, 0);
    gmd_module_child(engine, model, embedding(engine, shape));
    for (int64_t i = 0; i < shape->layers; i++) {
        gmd_module *block = shape->causal
                                ? gmd_nn_causal_block(engine, shape->features, shape->heads)
                                : gmd_nn_gpt_block(engine, shape->features, shape->heads);
        gmd_module_child(engine, model,
                         shape->checkpoint ? gmd_nn_checkpointed(engine, block) : block);
    }
    gmd_module_child(engine, model,
                     gmd_nn_linear(engine, shape->features, shape->vocabulary, false));
    return model;
}
