/* functions.c - functions of scripts that are not methods: tensors, nn.*, optim.*, gc.*. */
#include "arguments.h"
#include "gmd_collector.h"
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "gmd_reducer.h"
#include "gmd_sandbox.h"
#include "library_parts.h"

#define MAX_FEATURES ((lua_Integer)1 << 24)

static int give(lua_State *lua, struct tensor *tensor)
{
    if (!tensor) {
        raise_failure(lua);
    }
    return push_result(lua, tensor_thing(tensor));
}

/* --- tensors from nothing ---------------------------------------------------------------- */

static int create(lua_State *lua, enum dtype dtype)
{
    check_fields(lua, 1, "dtype requires_grad");
    struct shape shape = shape_at(lua, 1);
    enum dtype type = field_dtype(lua, 1, dtype);
    bool requires_grad = field_boolean(lua, 1, "requires_grad", false);
    if (requires_grad && !dtype_is_floating(type)) {
        return luaL_error(lua, "only floating types can require gradients, and this is %s",
                          dtype_name(type));
    }
    struct tensor *tensor = tensor_new(engine_of(lua), &shape, type);
    tensor->requires_grad = requires_grad;
    storage_mark(tensor->storage, GMD_INPUT);
    return give(lua, tensor);
}

static int create_float(lua_State *lua)
{
    return create(lua, DTYPE_FLOAT32);
}

static int create_integer(lua_State *lua)
{
    return create(lua, DTYPE_INT64);
}

static int create_like(lua_State *lua)
{
    struct tensor *tensor = tensor_like(engine_of(lua), check_tensor(lua, 1));
    storage_mark(tensor->storage, GMD_INPUT);
    return give(lua, tensor);
}

/* --- functions of tensors ---------------------------------------------------------------- */

static int cross_entropy(lua_State *lua)
{
    struct tensor *logits = check_tensor(lua, 1), *target = check_tensor(lua, 2);
    return give(lua, op_cross_entropy(engine_of(lua), logits, target));
}

static int relu(lua_State *lua)
{
    return give(lua, op_relu(engine_of(lua), check_tensor(lua, 1), false));
}

static int dropout(lua_State *lua)
{
    return give(lua, op_dropout(engine_of(lua), check_tensor(lua, 1)));
}

/* no_grad(function() ... end) records no graph. */
static int no_grad(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    bool before = engine->grad_enabled;
    luaL_checktype(lua, 1, LUA_TFUNCTION);
    engine->grad_enabled = false;
    int status = binding_call_block(lua, 1);
    engine->grad_enabled = before;
    return status == LUA_OK ? 0 : lua_error(lua);
}

static int call_clip_grad_norm(lua_State *lua)
{
    struct thing *module = check_thing(lua, 1, &module_class);
    clip_grad_norm(engine_of(lua), (struct module *)module);
    return 0;
}

/* cudnn.benchmark(true): the first use of a convolution tries all algorithms. */
static int cudnn_benchmark(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TBOOLEAN);
    engine_of(lua)->benchmark = lua_toboolean(lua, 1);
    return 0;
}

static const struct script_function cudnn_functions[] = {
    {"benchmark", cudnn_benchmark, FUNCTION_STATEMENT},
    {NULL, NULL, FUNCTION_CALL},
};

static const struct script_function tensor_functions[] = {
    {"randn", create_float, FUNCTION_CALL},
    {"rand", create_float, FUNCTION_CALL},
    {"zeros", create_float, FUNCTION_CALL},
    {"ones", create_float, FUNCTION_CALL},
    {"empty", create_float, FUNCTION_CALL},
    {"randint", create_integer, FUNCTION_CALL},
    {"randn_like", create_like, FUNCTION_CALL},
    {"zeros_like", create_like, FUNCTION_CALL},
    {"relu", relu, FUNCTION_CALL},
    {"dropout", dropout, FUNCTION_CALL},
    {"cross_entropy", cross_entropy, FUNCTION_CALL},
    {"no_grad", no_grad, FUNCTION_CALL},
    {"clip_grad_norm", call_clip_grad_norm, FUNCTION_STATEMENT},
    {"hold", binding_hold, FUNCTION_CALL},
    {NULL, NULL, FUNCTION_CALL},
};

/* --- nn ---------------------------------------------------------------------------------- */

static int give_module(lua_State *lua, struct module *module)
{
    return push_result(lua, (struct thing *)module);
}

static lua_Integer features(lua_State *lua, const char *name, int position)
{
    return field_integer(lua, 1, name, position, 1, MAX_FEATURES);
}

static struct conv window(lua_State *lua, lua_Integer stride)
{
    struct conv conv;
    conv.kernel = field_integer(lua, 1, "kernel", 0, 1, 1024);
    conv.stride = field_integer_or(lua, 1, "stride", stride ? stride : conv.kernel, 1, 1024);
    conv.padding = field_integer_or(lua, 1, "padding", 0, 0, 1024);
    return conv;
}

static int call_nn_conv2d(lua_State *lua)
{
    check_fields(lua, 1, "in_channels out_channels kernel stride padding bias");
    lua_Integer in = features(lua, "in_channels", 1), out = features(lua, "out_channels", 2);
    struct conv conv = window(lua, 1);
    bool bias = field_boolean(lua, 1, "bias", true);
    return give_module(lua, nn_conv2d(engine_of(lua), in, out, conv, bias));
}

static int call_nn_batch_norm(lua_State *lua)
{
    check_fields(lua, 1, "channels");
    return give_module(lua, nn_batch_norm(engine_of(lua), features(lua, "channels", 1)));
}

static int call_nn_relu(lua_State *lua)
{
    check_fields(lua, 1, "inplace");
    bool in_place = lua_istable(lua, 1) && field_boolean(lua, 1, "inplace", false);
    return give_module(lua, nn_relu(engine_of(lua), in_place));
}

static int call_nn_dropout(lua_State *lua)
{
    return give_module(lua, nn_dropout(engine_of(lua)));
}

static int call_nn_max_pool(lua_State *lua)
{
    check_fields(lua, 1, "kernel stride padding");
    return give_module(lua, nn_max_pool(engine_of(lua), window(lua, 0)));
}

static int call_nn_avg_pool(lua_State *lua)
{
    return give_module(lua, nn_avg_pool(engine_of(lua)));
}

static int call_nn_flatten(lua_State *lua)
{
    return give_module(lua, nn_flatten(engine_of(lua)));
}

static int call_nn_linear(lua_State *lua)
{
    check_fields(lua, 1, "in_features out_features bias");
    lua_Integer in = features(lua, "in_features", 1), out = features(lua, "out_features", 2);
    bool bias = field_boolean(lua, 1, "bias", true);
    return give_module(lua, nn_linear(engine_of(lua), in, out, bias));
}

static int call_nn_layer_norm(lua_State *lua)
{
    check_fields(lua, 1, "features");
    return give_module(lua, nn_layer_norm(engine_of(lua), features(lua, "features", 1)));
}

static int call_nn_embedding(lua_State *lua)
{
    check_fields(lua, 1, "entries features");
    lua_Integer entries = features(lua, "entries", 1), size = features(lua, "features", 2);
    return give_module(lua, nn_embedding(engine_of(lua), entries, size));
}

static int call_nn_rnn(lua_State *lua, enum rnn_kind kind)
{
    check_fields(lua, 1, "input hidden layers bidirectional batch_first");
    struct rnn shape = {.kind = kind};
    lua_Integer in = features(lua, "input", 1);
    shape.hidden = features(lua, "hidden", 2);
    shape.layers = field_integer_or(lua, 1, "layers", 1, 1, 32);
    shape.directions = field_boolean(lua, 1, "bidirectional", false) ? 2 : 1;
    shape.batch_first = field_boolean(lua, 1, "batch_first", true);
    return give_module(lua, nn_rnn(engine_of(lua), &shape, in));
}

static int call_nn_lstm(lua_State *lua)
{
    return call_nn_rnn(lua, RNN_LSTM);
}

static int call_nn_gru(lua_State *lua)
{
    return call_nn_rnn(lua, RNN_GRU);
}

static int call_nn_gru_cell(lua_State *lua)
{
    check_fields(lua, 1, "input hidden");
    lua_Integer in = features(lua, "input", 1), hidden = features(lua, "hidden", 2);
    return give_module(lua, nn_gru_cell(engine_of(lua), in, hidden));
}

static int call_nn_tanh(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_TANH));
}

static int call_nn_sigmoid(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_SIGMOID));
}

static int call_nn_gelu(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_GELU));
}

static int call_nn_silu(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_SILU));
}

static int call_nn_softmax(lua_State *lua)
{
    return give_module(lua, nn_softmax(engine_of(lua)));
}

static int call_nn_sequential(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    struct engine *engine = engine_of(lua);
    struct module *model = nn_sequential(engine, NULL, 0);
    push_result(lua, (struct thing *)model);
    lua_Integer count = (lua_Integer)lua_rawlen(lua, 1);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(lua, 1, i);
        struct thing *child = check_thing(lua, -1, &module_class);
        module_child(engine, model, module_keep((struct module *)child));
        lua_pop(lua, 1);
    }
    return 1;
}

static int call_nn_residual(lua_State *lua)
{
    struct module *body = (struct module *)check_thing(lua, 1, &module_class);
    return give_module(lua, nn_residual(engine_of(lua), module_keep(body)));
}

static void check_heads(lua_State *lua, lua_Integer size, lua_Integer heads)
{
    if (size % heads != 0) {
        luaL_error(lua, "features (%I) must be a multiple of heads (%I)", (LUAI_UACINT)size,
                   (LUAI_UACINT)heads);
    }
}

static int call_nn_transformer(lua_State *lua)
{
    check_fields(lua, 1, "layers features heads hidden gelu norm_first");
    struct encoder shape;
    shape.layers = field_integer(lua, 1, "layers", 0, 1, 1024);
    shape.features = features(lua, "features", 0);
    shape.heads = field_integer(lua, 1, "heads", 0, 1, 1024);
    shape.hidden = field_integer_or(lua, 1, "hidden", 4 * shape.features, 1, 4 * MAX_FEATURES);
    shape.gelu = field_boolean(lua, 1, "gelu", false);
    shape.norm_first = field_boolean(lua, 1, "norm_first", false);
    check_heads(lua, shape.features, shape.heads);
    return give_module(lua, nn_transformer(engine_of(lua), &shape));
}

static int call_nn_resnet50(lua_State *lua)
{
    check_fields(lua, 1, "classes");
    lua_Integer classes =
        lua_istable(lua, 1) ? field_integer_or(lua, 1, "classes", 1000, 1, MAX_FEATURES) : 1000;
    return give_module(lua, nn_resnet50(engine_of(lua), classes));
}

static int call_nn_gpt(lua_State *lua)
{
    check_fields(lua, 1, "vocabulary features heads layers checkpoint positions causal");
    struct gpt shape;
    shape.vocabulary = features(lua, "vocabulary", 0);
    shape.features = features(lua, "features", 0);
    shape.heads = field_integer(lua, 1, "heads", 0, 1, 1024);
    shape.layers = field_integer(lua, 1, "layers", 0, 1, 1024);
    shape.positions = field_integer_or(lua, 1, "positions", 0, 0, MAX_FEATURES);
    shape.causal = field_boolean(lua, 1, "causal", false);
    shape.checkpoint = field_boolean(lua, 1, "checkpoint", false);
    check_heads(lua, shape.features, shape.heads);
    return give_module(lua, nn_gpt(engine_of(lua), &shape));
}

static int call_nn_gpt_block(lua_State *lua)
{
    check_fields(lua, 1, "features heads");
    lua_Integer size = features(lua, "features", 1);
    lua_Integer heads = field_integer(lua, 1, "heads", 2, 1, 1024);
    check_heads(lua, size, heads);
    return give_module(lua, nn_gpt_block(engine_of(lua), size, heads));
}

static int call_nn_checkpointed(lua_State *lua)
{
    struct module *body = (struct module *)check_thing(lua, 1, &module_class);
    return give_module(lua, nn_checkpointed(engine_of(lua), module_keep(body)));
}

/* nn.DistributedDataParallel { model [, bucket = bytes, gradient_as_bucket_view = true] } */
static int call_nn_distributed(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    check_fields(lua, 1, "bucket gradient_as_bucket_view");
    lua_rawgeti(lua, 1, 1);
    struct module *body = (struct module *)check_thing(lua, -1, &module_class);
    lua_Integer bucket = field_integer_or(lua, 1, "bucket", 0, 0, INT64_MAX);
    bool as_views = field_boolean(lua, 1, "gradient_as_bucket_view", false);
    return give_module(
        lua, nn_distributed(engine_of(lua), module_keep(body), (uint64_t)bucket, as_views));
}

static int call_nn_seq2seq(lua_State *lua)
{
    check_fields(lua, 1, "vocabulary features hidden");
    lua_Integer vocabulary = features(lua, "vocabulary", 0);
    lua_Integer size = features(lua, "features", 0), hidden = features(lua, "hidden", 0);
    return give_module(lua, nn_seq2seq(engine_of(lua), vocabulary, size, hidden));
}

static const struct script_function nn_functions[] = {
    {"Conv2d", call_nn_conv2d, FUNCTION_CALL},
    {"BatchNorm2d", call_nn_batch_norm, FUNCTION_CALL},
    {"ReLU", call_nn_relu, FUNCTION_CALL},
    {"Dropout", call_nn_dropout, FUNCTION_CALL},
    {"MaxPool2d", call_nn_max_pool, FUNCTION_CALL},
    {"AdaptiveAvgPool2d", call_nn_avg_pool, FUNCTION_CALL},
    {"Flatten", call_nn_flatten, FUNCTION_CALL},
    {"Linear", call_nn_linear, FUNCTION_CALL},
    {"LayerNorm", call_nn_layer_norm, FUNCTION_CALL},
    {"Embedding", call_nn_embedding, FUNCTION_CALL},
    {"LSTM", call_nn_lstm, FUNCTION_CALL},
    {"GRU", call_nn_gru, FUNCTION_CALL},
    {"GRUCell", call_nn_gru_cell, FUNCTION_CALL},
    {"Tanh", call_nn_tanh, FUNCTION_CALL},
    {"Sigmoid", call_nn_sigmoid, FUNCTION_CALL},
    {"GELU", call_nn_gelu, FUNCTION_CALL},
    {"SiLU", call_nn_silu, FUNCTION_CALL},
    {"Softmax", call_nn_softmax, FUNCTION_CALL},
    {"seq2seq", call_nn_seq2seq, FUNCTION_CALL},
    {"gpt", call_nn_gpt, FUNCTION_CALL},
    {"GPTBlock", call_nn_gpt_block, FUNCTION_CALL},
    {"Checkpointed", call_nn_checkpointed, FUNCTION_CALL},
    {"DistributedDataParallel", call_nn_distributed, FUNCTION_CALL},
    {"Sequential", call_nn_sequential, FUNCTION_CALL},
    {"Residual", call_nn_residual, FUNCTION_CALL},
    {"TransformerEncoder", call_nn_transformer, FUNCTION_CALL},
    {"resnet50", call_nn_resnet50, FUNCTION_CALL},
    {NULL, NULL, FUNCTION_CALL},
};

/* --- optim ------------------------------------------------------------------------------- */

/* A module, a tensor, or a list of such. */
static void add_trainable(lua_State *lua, struct optimizer *optimizer, struct thing *thing)
{
    struct engine *engine = engine_of(lua);
    if (thing && thing->class == &module_class) {
        optimizer_add_module(engine, optimizer, (struct module *)thing);
    } else if (thing && thing->class == &list_class) {
        struct list *list = (struct list *)thing;
        for (size_t i = 0; i < list_count(list); i++) {
            struct thing *item = list_at(list, i);
            luaL_argcheck(lua, item->class != &list_class, 1, "a list of lists is not accepted");
            add_trainable(lua, optimizer, item);
        }
    } else if (thing && thing->class == &tensor_class) {
        optimizer_add(engine, optimizer, (struct tensor *)thing);
    } else {
        luaL_argerror(lua, 1, "modules, tensors or lists of them expected");
    }
}

static void add_parameters(lua_State *lua, struct optimizer *optimizer)
{
    lua_Integer count = (lua_Integer)lua_rawlen(lua, 1);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(lua, 1, i);
        add_trainable(lua, optimizer, thing_at(lua, -1));
        lua_pop(lua, 1);
    }
}

/* `adds_decay`: weight decay is added to each gradient. */
static int new_optimizer(lua_State *lua, enum optimizer_method method, bool adds_decay)
{
    check_fields(lua, 1, "lr momentum weight_decay betas eps foreach fused");
    luaL_checktype(lua, 1, LUA_TTABLE);
    bool momentum = field_number(lua, 1, "momentum", 0) > 0;
    struct optimizer *optimizer = optimizer_new(engine_of(lua), method, momentum);
    if (adds_decay && field_number(lua, 1, "weight_decay", 0) > 0) {
        optimizer_decay(optimizer);
    }
    if (field_boolean(lua, 1, "fused", false)) {
        optimizer_implementation(optimizer, OPTIMIZER_FUSED);
    } else if (!field_boolean(lua, 1, "foreach", true)) {
        optimizer_implementation(optimizer, OPTIMIZER_FOR_LOOP);
    }
    push_result(lua, (struct thing *)optimizer);
    add_parameters(lua, optimizer);
    return 1;
}

static int call_optim_sgd(lua_State *lua)
{
    return new_optimizer(lua, OPTIMIZER_SGD, true);
}

static int call_optim_adam(lua_State *lua)
{
    return new_optimizer(lua, OPTIMIZER_ADAM, true);
}

static int call_optim_adamw(lua_State *lua)
{
    return new_optimizer(lua, OPTIMIZER_ADAM, false);
}

static const struct script_function optim_functions[] = {
    {"SGD", call_optim_sgd, FUNCTION_CALL},
    {"Adam", call_optim_adam, FUNCTION_CALL},
    {"AdamW", call_optim_adamw, FUNCTION_CALL},
    {NULL, NULL, FUNCTION_CALL},
};

/* --- objects and the collector ----------------------------------------------------------- */

static int new_object(lua_State *lua)
{
    return push_result(lua, (struct thing *)object_new(engine_of(lua)));
}

static int new_list(lua_State *lua)
{
    return push_result(lua, (struct thing *)list_new(engine_of(lua)));
}

static int gc_collect(lua_State *lua)
{
    lua_Integer generation = luaL_optinteger(lua, 1, COLLECTOR_GENERATIONS - 1);
    luaL_argcheck(lua, generation >= 0 && generation < COLLECTOR_GENERATIONS, 1,
                  "0, 1 or 2 expected");
    size_t found = collector_collect(engine_of(lua), (int)generation);
    lua_pushinteger(lua, (lua_Integer)found);
    return 1;
}

static int gc_enable(lua_State *lua)
{
    collector_enable(engine_of(lua), true);
    return 0;
}

static int gc_disable(lua_State *lua)
{
    collector_enable(engine_of(lua), false);
    return 0;
}

static int gc_count(lua_State *lua)
{
    uint64_t counts[COLLECTOR_GENERATIONS];
    collector_counts(engine_of(lua), counts);
    for (int i = 0; i < COLLECTOR_GENERATIONS; i++) {
        lua_pushinteger(lua, (lua_Integer)counts[i]);
    }
    return COLLECTOR_GENERATIONS;
}

static void check_counts(lua_State *lua, uint64_t counts[COLLECTOR_GENERATIONS])
{
    for (int i = 0; i < COLLECTOR_GENERATIONS; i++) {
        lua_Integer count = luaL_checkinteger(lua, i + 1);
        luaL_argcheck(lua, count >= 0, i + 1, "must not be negative");
        counts[i] = (uint64_t)count;
    }
}

static int gc_set_count(lua_State *lua)
{
    uint64_t counts[COLLECTOR_GENERATIONS];
    check_counts(lua, counts);
    collector_set_counts(engine_of(lua), counts);
    return 0;
}

static int gc_set_threshold(lua_State *lua)
{
    uint64_t thresholds[COLLECTOR_GENERATIONS];
    check_counts(lua, thresholds);
    collector_set_thresholds(engine_of(lua), thresholds);
    return 0;
}

static int gc_background(lua_State *lua)
{
    check_fields(lua, 1, "objects free_lists");
    lua_Integer objects = field_integer(lua, 1, "objects", 1, 0, 1000000000);
    lua_Integer refill = field_integer_or(lua, 1, "free_lists", 0, 0, 1000000000);
    collector_background(engine_of(lua), (uint64_t)objects, (uint64_t)refill,
                         binding_of(lua)->budget);
    sandbox_check(lua);
    return 0;
}

static const struct script_function object_functions[] = {{"object", new_object, FUNCTION_CALL},
                                                          {"list", new_list, FUNCTION_CALL},
                                                          {NULL, NULL, FUNCTION_CALL}};

static const struct script_function gc_functions[] = {
    {"collect", gc_collect, FUNCTION_STATEMENT},
    {"enable", gc_enable, FUNCTION_STATEMENT},
    {"disable", gc_disable, FUNCTION_STATEMENT},
    {"get_count", gc_count, FUNCTION_QUERY},
    {"set_count", gc_set_count, FUNCTION_STATEMENT},
    {"set_threshold", gc_set_threshold, FUNCTION_STATEMENT},
    {"background", gc_background, FUNCTION_STATEMENT},
    {NULL, NULL, FUNCTION_CALL},
};

/* --- all of them ------------------------------------------------------------------------ */

static void library(lua_State *lua, const char *name, const struct script_function *functions)
{
    lua_newtable(lua);
    binding_functions(lua, functions);
    lua_setfield(lua, -2, name);
}

void engine_functions(lua_State *lua)
{
    binding_functions(lua, tensor_functions);
    binding_functions(lua, object_functions);
    library(lua, "nn", nn_functions);
    library(lua, "optim", optim_functions);
    library(lua, "gc", gc_functions);
    library(lua, "cudnn", cudnn_functions);
}
