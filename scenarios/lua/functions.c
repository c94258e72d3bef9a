/* functions.c - what scripts call that is not a method: tensors, nn.*, optim.*, gc.*.
 */
#include "arguments.h"
#include "gmd_collector.h"
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "gmd_sandbox.h"
#include "library.h"

#define MAX_FEATURES ((lua_Integer)1 << 24)

static int give(lua_State *lua, gmd_tensor *tensor)
{
    if (!tensor) {
        gmd_raise_failure(lua);
    }
    return gmd_push_result(lua, gmd_thing_of(tensor));
}

/* --- tensors from nothing ---------------------------------------------------------------- */

static int create(lua_State *lua, gmd_dtype dtype)
{
    gmd_known_fields(lua, 1, "dtype requires_grad");
    gmd_shape shape = gmd_shape_at(lua, 1);
    gmd_dtype type = gmd_field_dtype(lua, 1, dtype);
    bool requires_grad = gmd_field_boolean(lua, 1, "requires_grad", false);
    if (requires_grad && !gmd_dtype_is_floating(type)) {
        return luaL_error(lua, "only floating types can require gradients, and this is %s",
                          gmd_dtype_name(type));
    }
    gmd_tensor *tensor = gmd_tensor_new(engine_of(lua), &shape, type);
    tensor->requires_grad = requires_grad;
    gmd_storage_is(tensor->storage, GMD_INPUT);
    return give(lua, tensor);
}

static int create_float(lua_State *lua)
{
    return create(lua, GMD_FLOAT32);
}

static int create_integer(lua_State *lua)
{
    return create(lua, GMD_INT64);
}

static int create_like(lua_State *lua)
{
    gmd_tensor *tensor = gmd_tensor_like(engine_of(lua), gmd_check_tensor(lua, 1));
    gmd_storage_is(tensor->storage, GMD_INPUT);
    return give(lua, tensor);
}

/* --- functions of tensors ---------------------------------------------------------------- */

static int cross_entropy(lua_State *lua)
{
    gmd_tensor *logits = gmd_check_tensor(lua, 1), *target = gmd_check_tensor(lua, 2);
    return give(lua, gmd_op_cross_entropy(engine_of(lua), logits, target));
}

static int relu(lua_State *lua)
{
    return give(lua, gmd_op_relu(engine_of(lua), gmd_check_tensor(lua, 1), false));
}

static int dropout(lua_State *lua)
{
    return give(lua, gmd_op_dropout(engine_of(lua), gmd_check_tensor(lua, 1)));
}

/* no_grad(function() ... end): nothing is recorded meanwhile. */
static int no_grad(lua_State *lua)
{
    gmd_engine *engine = engine_of(lua);
    bool before = engine->grad_enabled;
    luaL_checktype(lua, 1, LUA_TFUNCTION);
    engine->grad_enabled = false;
    int status = gmd_lua_call_block(lua, 1);
    engine->grad_enabled = before;
    return status == LUA_OK ? 0 : lua_error(lua);
}

static int clip_grad_norm(lua_State *lua)
{
    gmd_thing *module = gmd_check_thing(lua, 1, &gmd_module_class);
    gmd_clip_grad_norm(engine_of(lua), (gmd_module *)module);
    return 0;
}

/* cudnn.benchmark(true): the first use of a convolution tries all algorithms. */
static int cudnn_benchmark(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TBOOLEAN);
    engine_of(lua)->benchmark = lua_toboolean(lua, 1);
    return 0;
}

static const gmd_function cudnn_functions[] = {
    {"benchmark", cudnn_benchmark, GMD_STATEMENT},
    {NULL, NULL, GMD_CALL},
};

static const gmd_function tensor_functions[] = {
    {"randn", create_float, GMD_CALL},
    {"rand", create_float, GMD_CALL},
    {"zeros", create_float, GMD_CALL},
    {"ones", create_float, GMD_CALL},
    {"empty", create_float, GMD_CALL},
    {"randint", create_integer, GMD_CALL},
    {"randn_like", create_like, GMD_CALL},
    {"zeros_like", create_like, GMD_CALL},
    {"relu", relu, GMD_CALL},
    {"dropout", dropout, GMD_CALL},
    {"cross_entropy", cross_entropy, GMD_CALL},
    {"no_grad", no_grad, GMD_CALL},
    {"clip_grad_norm", clip_grad_norm, GMD_STATEMENT},
    {"hold", gmd_lua_hold, GMD_CALL},
    {NULL, NULL, GMD_CALL},
};

/* --- nn ---------------------------------------------------------------------------------- */

static int give_module(lua_State *lua, gmd_module *module)
{
    return gmd_push_result(lua, (gmd_thing *)module);
}

static lua_Integer features(lua_State *lua, const char *name, int position)
{
    return gmd_field_integer(lua, 1, name, position, 1, MAX_FEATURES);
}

static gmd_conv window(lua_State *lua, lua_Integer stride)
{
    gmd_conv conv;
    conv.kernel = gmd_field_integer(lua, 1, "kernel", 0, 1, 1024);
    conv.stride = gmd_field_integer_or(lua, 1, "stride", stride ? stride : conv.kernel, 1, 1024);
    conv.padding = gmd_field_integer_or(lua, 1, "padding", 0, 0, 1024);
    return conv;
}

static int nn_conv2d(lua_State *lua)
{
    gmd_known_fields(lua, 1, "in_channels out_channels kernel stride padding bias");
    lua_Integer in = features(lua, "in_channels", 1), out = features(lua, "out_channels", 2);
    gmd_conv conv = window(lua, 1);
    bool bias = gmd_field_boolean(lua, 1, "bias", true);
    return give_module(lua, gmd_nn_conv2d(engine_of(lua), in, out, conv, bias));
}

static int nn_batch_norm(lua_State *lua)
{
    gmd_known_fields(lua, 1, "channels");
    return give_module(lua, gmd_nn_batch_norm(engine_of(lua), features(lua, "channels", 1)));
}

static int nn_relu(lua_State *lua)
{
    gmd_known_fields(lua, 1, "inplace");
    bool in_place = lua_istable(lua, 1) && gmd_field_boolean(lua, 1, "inplace", false);
    return give_module(lua, gmd_nn_relu(engine_of(lua), in_place));
}

static int nn_dropout(lua_State *lua)
{
    return give_module(lua, gmd_nn_dropout(engine_of(lua)));
}

static int nn_max_pool(lua_State *lua)
{
    gmd_known_fields(lua, 1, "kernel stride padding");
    return give_module(lua, gmd_nn_max_pool(engine_of(lua), window(lua, 0)));
}

static int nn_avg_pool(lua_State *lua)
{
    return give_module(lua, gmd_nn_avg_pool(engine_of(lua)));
}

static int nn_flatten(lua_State *lua)
{
    return give_module(lua, gmd_nn_flatten(engine_of(lua)));
}

static int nn_linear(lua_State *lua)
{
    gmd_known_fields(lua, 1, "in_features out_features bias");
    lua_Integer in = features(lua, "in_features", 1), out = features(lua, "out_features", 2);
    bool bias = gmd_field_boolean(lua, 1, "bias", true);
    return give_module(lua, gmd_nn_linear(engine_of(lua), in, out, bias));
}

static int nn_layer_norm(lua_State *lua)
{
    gmd_known_fields(lua, 1, "features");
    return give_module(lua, gmd_nn_layer_norm(engine_of(lua), features(lua, "features", 1)));
}

static int nn_embedding(lua_State *lua)
{
    gmd_known_fields(lua, 1, "entries features");
    lua_Integer entries = features(lua, "entries", 1), size = features(lua, "features", 2);
    return give_module(lua, gmd_nn_embedding(engine_of(lua), entries, size));
}

static int nn_rnn(lua_State *lua, gmd_rnn_kind kind)
{
    gmd_known_fields(lua, 1, "input hidden layers bidirectional batch_first");
    gmd_rnn shape = {.kind = kind};
    lua_Integer in = features(lua, "input", 1);
    shape.hidden = features(lua, "hidden", 2);
    shape.layers = gmd_field_integer_or(lua, 1, "layers", 1, 1, 32);
    shape.directions = gmd_field_boolean(lua, 1, "bidirectional", false) ? 2 : 1;
    shape.batch_first = gmd_field_boolean(lua, 1, "batch_first", true);
    return give_module(lua, gmd_nn_rnn(engine_of(lua), &shape, in));
}

static int nn_lstm(lua_State *lua)
{
    return nn_rnn(lua, GMD_LSTM);
}

static int nn_gru(lua_State *lua)
{
    return nn_rnn(lua, GMD_GRU);
}

static int nn_gru_cell(lua_State *lua)
{
    gmd_known_fields(lua, 1, "input hidden");
    lua_Integer in = features(lua, "input", 1), hidden = features(lua, "hidden", 2);
    return give_module(lua, gmd_nn_gru_cell(engine_of(lua), in, hidden));
}

static int nn_tanh(lua_State *lua)
{
    return give_module(lua, gmd_nn_activation(engine_of(lua), GMD_TANH));
}

static int nn_sigmoid(lua_State *lua)
{
    return give_module(lua, gmd_nn_activation(engine_of(lua), GMD_SIGMOID));
}

static int nn_gelu(lua_State *lua)
{
    return give_module(lua, gmd_nn_activation(engine_of(lua), GMD_GELU));
}

static int nn_silu(lua_State *lua)
{
    return give_module(lua, gmd_nn_activation(engine_of(lua), GMD_SILU));
}

static int nn_softmax(lua_State *lua)
{
    return give_module(lua, gmd_nn_softmax(engine_of(lua)));
}

static int nn_sequential(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    gmd_engine *engine = engine_of(lua);
    gmd_module *model = gmd_nn_sequential(engine, NULL, 0);
    gmd_push_result(lua, (gmd_thing *)model);
    lua_Integer count = (lua_Integer)lua_rawlen(lua, 1);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(lua, 1, i);
        gmd_thing *child = gmd_check_thing(lua, -1, &gmd_module_class);
        gmd_module_child(engine, model, gmd_module_keep((gmd_module *)child));
        lua_pop(lua, 1);
    }
    return 1;
}

static int nn_residual(lua_State *lua)
{
    gmd_module *body = (gmd_module *)gmd_check_thing(lua, 1, &gmd_module_class);
    return give_module(lua, gmd_nn_residual(engine_of(lua), gmd_module_keep(body)));
}

static void check_heads(lua_State *lua, lua_Integer size, lua_Integer heads)
{
    if (size % heads != 0) {
        luaL_error(lua, "features (%I) must be a multiple of heads (%I)", (LUAI_UACINT)size,
                   (LUAI_UACINT)heads);
    }
}

static int nn_transformer(lua_State *lua)
{
    gmd_known_fields(lua, 1, "layers features heads hidden gelu norm_first");
    gmd_encoder shape;
    shape.layers = gmd_field_integer(lua, 1, "layers", 0, 1, 1024);
    shape.features = features(lua, "features", 0);
    shape.heads = gmd_field_integer(lua, 1, "heads", 0, 1, 1024);
    shape.hidden = gmd_field_integer_or(lua, 1, "hidden", 4 * shape.features, 1, 4 * MAX_FEATURES);
    shape.gelu = gmd_field_boolean(lua, 1, "gelu", false);
    shape.norm_first = gmd_field_boolean(lua, 1, "norm_first", false);
    check_heads(lua, shape.features, shape.heads);
    return give_module(lua, gmd_nn_transformer(engine_of(lua), &shape));
}

static int nn_resnet50(lua_State *lua)
{
    gmd_known_fields(lua, 1, "classes");
    lua_Integer classes =
        lua_istable(lua, 1) ? gmd_field_integer_or(lua, 1, "classes", 1000, 1, MAX_FEATURES) : 1000;
    return give_module(lua, gmd_nn_resnet50(engine_of(lua), classes));
}

static int nn_gpt(lua_State *lua)
{
    gmd_known_fields(lua, 1, "vocabulary features heads layers checkpoint positions causal");
    gmd_gpt shape;
    shape.vocabulary = features(lua, "vocabulary", 0);
    shape.features = features(lua, "features", 0);
    shape.heads = gmd_field_integer(lua, 1, "heads", 0, 1, 1024);
    shape.layers = gmd_field_integer(lua, 1, "layers", 0, 1, 1024);
    shape.positions = gmd_field_integer_or(lua, 1, "positions", 0, 0, MAX_FEATURES);
    shape.causal = gmd_field_boolean(lua, 1, "causal", false);
    shape.checkpoint = gmd_field_boolean(lua, 1, "checkpoint", false);
    check_heads(lua, shape.features, shape.heads);
    return give_module(lua, gmd_nn_gpt(engine_of(lua), &shape));
}

static int nn_gpt_block(lua_State *lua)
{
    gmd_known_fields(lua, 1, "features heads");
    lua_Integer size = features(lua, "features", 1);
    lua_Integer heads = gmd_field_integer(lua, 1, "heads", 2, 1, 1024);
    check_heads(lua, size, heads);
    return give_module(lua, gmd_nn_gpt_block(engine_of(lua), size, heads));
}

static int nn_checkpointed(lua_State *lua)
{
    gmd_module *body = (gmd_module *)gmd_check_thing(lua, 1, &gmd_module_class);
    return give_module(lua, gmd_nn_checkpointed(engine_of(lua), gmd_module_keep(body)));
}

static int nn_seq2seq(lua_State *lua)
{
    gmd_known_fields(lua, 1, "vocabulary features hidden");
    lua_Integer vocabulary = features(lua, "vocabulary", 0);
    lua_Integer size = features(lua, "features", 0), hidden = features(lua, "hidden", 0);
    return give_module(lua, gmd_nn_seq2seq(engine_of(lua), vocabulary, size, hidden));
}

static const gmd_function nn_functions[] = {
    {"Conv2d", nn_conv2d, GMD_CALL},
    {"BatchNorm2d", nn_batch_norm, GMD_CALL},
    {"ReLU", nn_relu, GMD_CALL},
    {"Dropout", nn_dropout, GMD_CALL},
    {"MaxPool2d", nn_max_pool, GMD_CALL},
    {"AdaptiveAvgPool2d", nn_avg_pool, GMD_CALL},
    {"Flatten", nn_flatten, GMD_CALL},
    {"Linear", nn_linear, GMD_CALL},
    {"LayerNorm", nn_layer_norm, GMD_CALL},
    {"Embedding", nn_embedding, GMD_CALL},
    {"LSTM", nn_lstm, GMD_CALL},
    {"GRU", nn_gru, GMD_CALL},
    {"GRUCell", nn_gru_cell, GMD_CALL},
    {"Tanh", nn_tanh, GMD_CALL},
    {"Sigmoid", nn_sigmoid, GMD_CALL},
    {"GELU", nn_gelu, GMD_CALL},
    {"SiLU", nn_silu, GMD_CALL},
    {"Softmax", nn_softmax, GMD_CALL},
    {"seq2seq", nn_seq2seq, GMD_CALL},
    {"gpt", nn_gpt, GMD_CALL},
    {"GPTBlock", nn_gpt_block, GMD_CALL},
    {"Checkpointed", nn_checkpointed, GMD_CALL},
    {"Sequential", nn_sequential, GMD_CALL},
    {"Residual", nn_residual, GMD_CALL},
    {"TransformerEncoder", nn_transformer, GMD_CALL},
    {"resnet50", nn_resnet50, GMD_CALL},
    {NULL, NULL, GMD_CALL},
};

/* --- optim ------------------------------------------------------------------------------- */

/* A module, a tensor, or a list of such. */
static void add_trainable(lua_State *lua, gmd_optimizer *optimizer, gmd_thing *thing)
{
    gmd_engine *engine = engine_of(lua);
    if (thing && thing->class == &gmd_module_class) {
        gmd_optimizer_add_module(engine, optimizer, (gmd_module *)thing);
    } else if (thing && thing->class == &gmd_list_class) {
        gmd_list *list = (gmd_list *)thing;
        for (size_t i = 0; i < gmd_list_count(list); i++) {
            gmd_thing *item = gmd_list_at(list, i);
            luaL_argcheck(lua, item->class != &gmd_list_class, 1, "a list of lists");
            add_trainable(lua, optimizer, item);
        }
    } else if (thing && thing->class == &gmd_tensor_class) {
        gmd_optimizer_add(engine, optimizer, (gmd_tensor *)thing);
    } else {
        luaL_argerror(lua, 1, "modules, tensors or lists of them expected");
    }
}

static void add_parameters(lua_State *lua, gmd_optimizer *optimizer)
{
    lua_Integer count = (lua_Integer)lua_rawlen(lua, 1);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(lua, 1, i);
        add_trainable(lua, optimizer, gmd_thing_at(lua, -1));
        lua_pop(lua, 1);
    }
}

/* `adds_decay`: weight decay makes a sum with each gradient. */
static int new_optimizer(lua_State *lua, gmd_method method, bool adds_decay)
{
    gmd_known_fields(lua, 1, "lr momentum weight_decay betas eps foreach fused");
    luaL_checktype(lua, 1, LUA_TTABLE);
    bool momentum = gmd_field_number(lua, 1, "momentum", 0) > 0;
    gmd_optimizer *optimizer = gmd_optimizer_new(engine_of(lua), method, momentum);
    if (adds_decay && gmd_field_number(lua, 1, "weight_decay", 0) > 0) {
        gmd_optimizer_decay(optimizer);
    }
    if (gmd_field_boolean(lua, 1, "fused", false)) {
        gmd_optimizer_implementation(optimizer, GMD_FUSED);
    } else if (!gmd_field_boolean(lua, 1, "foreach", true)) {
        gmd_optimizer_implementation(optimizer, GMD_FOR_LOOP);
    }
    gmd_push_result(lua, (gmd_thing *)optimizer);
    add_parameters(lua, optimizer);
    return 1;
}

static int optim_sgd(lua_State *lua)
{
    return new_optimizer(lua, GMD_SGD, true);
}

static int optim_adam(lua_State *lua)
{
    return new_optimizer(lua, GMD_ADAM, true);
}

static int optim_adamw(lua_State *lua)
{
    return new_optimizer(lua, GMD_ADAM, false);
}

static const gmd_function optim_functions[] = {
    {"SGD", optim_sgd, GMD_CALL},
    {"Adam", optim_adam, GMD_CALL},
    {"AdamW", optim_adamw, GMD_CALL},
    {NULL, NULL, GMD_CALL},
};

/* --- objects and the collector ----------------------------------------------------------- */

static int new_object(lua_State *lua)
{
    return gmd_push_result(lua, (gmd_thing *)gmd_object_new(engine_of(lua)));
}

static int new_list(lua_State *lua)
{
    return gmd_push_result(lua, (gmd_thing *)gmd_list_new(engine_of(lua)));
}

static int gc_collect(lua_State *lua)
{
    lua_Integer generation = luaL_optinteger(lua, 1, GMD_GENERATIONS - 1);
    luaL_argcheck(lua, generation >= 0 && generation < GMD_GENERATIONS, 1, "0, 1 or 2 expected");
    size_t found = gmd_collector_collect(engine_of(lua), (int)generation);
    lua_pushinteger(lua, (lua_Integer)found);
    return 1;
}

static int gc_enable(lua_State *lua)
{
    gmd_collector_enable(engine_of(lua), true);
    return 0;
}

static int gc_disable(lua_State *lua)
{
    gmd_collector_enable(engine_of(lua), false);
    return 0;
}

static int gc_count(lua_State *lua)
{
    uint64_t counts[GMD_GENERATIONS];
    gmd_collector_counts(engine_of(lua), counts);
    for (int i = 0; i < GMD_GENERATIONS; i++) {
        lua_pushinteger(lua, (lua_Integer)counts[i]);
    }
    return GMD_GENERATIONS;
}

static void check_counts(lua_State *lua, uint64_t counts[GMD_GENERATIONS])
{
    for (int i = 0; i < GMD_GENERATIONS; i++) {
        lua_Integer count = luaL_checkinteger(lua, i + 1);
        luaL_argcheck(lua, count >= 0, i + 1, "not below 0");
        counts[i] = (uint64_t)count;
    }
}

static int gc_set_count(lua_State *lua)
{
    uint64_t counts[GMD_GENERATIONS];
    check_counts(lua, counts);
    gmd_collector_set_counts(engine_of(lua), counts);
    return 0;
}

static int gc_set_threshold(lua_State *lua)
{
    uint64_t thresholds[GMD_GENERATIONS];
    check_counts(lua, thresholds);
    gmd_collector_set_thresholds(engine_of(lua), thresholds);
    return 0;
}

static int gc_background(lua_State *lua)
{
    gmd_known_fields(lua, 1, "objects free_lists");
    lua_Integer objects = gmd_field_integer(lua, 1, "objects", 1, 0, 1000000000);
    lua_Integer refill = gmd_field_integer_or(lua, 1, "free_lists", 0, 0, 1000000000);
    gmd_collector_background(engine_of(lua), (uint64_t)objects, (uint64_t)refill,
                             gmd_binding_of(lua)->budget);
    gmd_sandbox_check(lua);
    return 0;
}

static const gmd_function object_functions[] = {
    {"object", new_object, GMD_CALL}, {"list", new_list, GMD_CALL}, {NULL, NULL, GMD_CALL}};

static const gmd_function gc_functions[] = {
    {"collect", gc_collect, GMD_STATEMENT},
    {"enable", gc_enable, GMD_STATEMENT},
    {"disable", gc_disable, GMD_STATEMENT},
    {"get_count", gc_count, GMD_QUERY},
    {"set_count", gc_set_count, GMD_STATEMENT},
    {"set_threshold", gc_set_threshold, GMD_STATEMENT},
    {"background", gc_background, GMD_STATEMENT},
    {NULL, NULL, GMD_CALL},
};

/* --- all of them ------------------------------------------------------------------------ */

static void library(lua_State *lua, const char *name, const gmd_function *functions)
{
    lua_newtable(lua);
    gmd_binding_functions(lua, functions);
    lua_setfield(lua, -2, name);
}

void engine_functions(lua_State *lua)
{
    gmd_binding_functions(lua, tensor_functions);
    gmd_binding_functions(lua, object_functions);
    library(lua, "nn", nn_functions);
    library(lua, "optim", optim_functions);
    library(lua, "gc", gc_functions);
    library(lua, "cudnn", cudnn_functions);
}
