/* nn.c - modules: nn.Linear { 1024, 4096, bias = false }. */
#include "gmd_reducer.h"
#include "library_parts.h"

#include <math.h>
#include <string.h>

#define MAX_FEATURES 16777216.0
#define MAX_WINDOW   1024
#define MAX_BUCKET   0x1p50

static int give_module(lua_State *lua, struct module *module)
{
    if (!module) {
        raise_failure(lua);
    }
    return push_result(lua, (struct thing *)module);
}

static int64_t integer(lua_State *lua, int index)
{
    return lua_tointeger(lua, index);
}

/* --- convolutions and pools -------------------------------------------------------------- */

enum { IN = 1, OUT, KERNEL, STRIDE, PADDING, BIAS, DILATION, GROUPS };

static void check_groups(lua_State *lua, int64_t in, int64_t out, int64_t groups)
{
    if (in % groups != 0 || out % groups != 0) {
        luaL_error(lua, "groups: %I do not divide %I channels into equal parts, or not %I",
                   (LUAI_UACINT)groups, (LUAI_UACINT)in, (LUAI_UACINT)out);
    }
}

static int conv2d(lua_State *lua)
{
    struct conv conv = {{1, 1}, {1, 1}, {0, 0}, {1, 1}, integer(lua, GROUPS)};
    pair_at(lua, KERNEL, conv.kernel);
    pair_at(lua, STRIDE, conv.stride);
    pair_at(lua, PADDING, conv.padding);
    pair_at(lua, DILATION, conv.dilation);
    int64_t in = integer(lua, IN), out = integer(lua, OUT);
    check_groups(lua, in, out, conv.groups);
    return give_module(lua, nn_conv2d(engine_of(lua), in, out, conv, lua_toboolean(lua, BIAS)));
}

static int conv1d(lua_State *lua)
{
    struct conv conv = {{1, integer(lua, KERNEL)},
                        {1, integer(lua, STRIDE)},
                        {0, integer(lua, PADDING)},
                        {1, integer(lua, DILATION)},
                        integer(lua, GROUPS)};
    int64_t in = integer(lua, IN), out = integer(lua, OUT);
    check_groups(lua, in, out, conv.groups);
    return give_module(lua, nn_conv1d(engine_of(lua), in, out, conv, lua_toboolean(lua, BIAS)));
}

enum { POOL_KERNEL = 1, POOL_STRIDE, POOL_PADDING };

static struct conv pool_at(lua_State *lua)
{
    struct conv pool = {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1};
    pair_at(lua, POOL_KERNEL, pool.kernel);
    memcpy(pool.stride, pool.kernel, sizeof pool.stride);
    pair_at(lua, POOL_STRIDE, pool.stride);
    pair_at(lua, POOL_PADDING, pool.padding);
    for (int i = 0; i < 2; i++) {
        if (pool.padding[i] > pool.kernel[i] / 2) {
            luaL_error(lua, "padding: %I is more than half of the window of %I",
                       (LUAI_UACINT)pool.padding[i], (LUAI_UACINT)pool.kernel[i]);
        }
    }
    return pool;
}

static int max_pool(lua_State *lua)
{
    return give_module(lua, nn_max_pool(engine_of(lua), pool_at(lua)));
}

static int avg_pool(lua_State *lua)
{
    return give_module(lua, nn_avg_pool(engine_of(lua), pool_at(lua)));
}

static int adaptive_avg_pool(lua_State *lua)
{
    int64_t size[2] = {1, 1};
    pair_at(lua, 1, size);
    return give_module(lua, nn_adaptive_avg_pool(engine_of(lua), size));
}

/* nn.Upsample { scale_factor = 2 } or { size = { 64, 64 } } */
static int upsample(lua_State *lua)
{
    return give_module(lua, nn_upsample(engine_of(lua), upsample_at(lua, 1, "nn.Upsample")));
}

/* --- normalisation ----------------------------------------------------------------------- */

static int batch_norm(lua_State *lua)
{
    return give_module(lua, nn_batch_norm(engine_of(lua), integer(lua, 1), true));
}

static int batch_norm_1d(lua_State *lua)
{
    return give_module(lua, nn_batch_norm(engine_of(lua), integer(lua, 1), false));
}

static int layer_norm(lua_State *lua)
{
    return give_module(lua, nn_layer_norm(engine_of(lua), integer(lua, 1)));
}

static int rms_norm(lua_State *lua)
{
    return give_module(lua, nn_rms_norm(engine_of(lua), integer(lua, 1)));
}

static int group_norm(lua_State *lua)
{
    int64_t groups = integer(lua, 1), channels = integer(lua, 2);
    check_groups(lua, channels, channels, groups);
    return give_module(lua, nn_group_norm(engine_of(lua), groups, channels));
}

/* --- elementwise and shapes -------------------------------------------------------------- */

static int relu(lua_State *lua)
{
    return give_module(lua, nn_relu(engine_of(lua), lua_toboolean(lua, 1)));
}

static int leaky_relu(lua_State *lua)
{
    return give_module(lua, nn_leaky_relu(engine_of(lua), lua_toboolean(lua, 2)));
}

static int dropout(lua_State *lua)
{
    return give_module(lua, nn_dropout(engine_of(lua), lua_tonumber(lua, 1)));
}

static int flatten(lua_State *lua)
{
    return give_module(lua, nn_flatten(engine_of(lua), integer(lua, 1), integer(lua, 2)));
}

static int softmax(lua_State *lua)
{
    return give_module(lua, nn_softmax(engine_of(lua), integer(lua, 1)));
}

static int tanh_module(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_TANH));
}

static int sigmoid(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_SIGMOID));
}

static int gelu(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_GELU));
}

static int silu(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_SILU));
}

/* --- weights ----------------------------------------------------------------------------- */

static int linear(lua_State *lua)
{
    return give_module(
        lua, nn_linear(engine_of(lua), integer(lua, 1), integer(lua, 2), lua_toboolean(lua, 3)));
}

static int embedding(lua_State *lua)
{
    return give_module(lua, nn_embedding(engine_of(lua), integer(lua, 1), integer(lua, 2)));
}

enum { RNN_INPUT = 1, RNN_HIDDEN, RNN_LAYERS, RNN_BOTH, RNN_BATCH_FIRST, RNN_DROPOUT };

static int rnn(lua_State *lua, enum rnn_kind kind)
{
    struct rnn shape = {.kind = kind,
                        .hidden = integer(lua, RNN_HIDDEN),
                        .layers = integer(lua, RNN_LAYERS),
                        .directions = lua_toboolean(lua, RNN_BOTH) ? 2 : 1,
                        .batch_first = lua_toboolean(lua, RNN_BATCH_FIRST),
                        .dropout = lua_tonumber(lua, RNN_DROPOUT)};
    return give_module(lua, nn_rnn(engine_of(lua), &shape, integer(lua, RNN_INPUT)));
}

static int lstm(lua_State *lua)
{
    return rnn(lua, RNN_LSTM);
}

static int gru(lua_State *lua)
{
    return rnn(lua, RNN_GRU);
}

static int gru_cell(lua_State *lua)
{
    return give_module(lua, nn_gru_cell(engine_of(lua), integer(lua, 1), integer(lua, 2)));
}

/* --- compositions ------------------------------------------------------------------------ */

static int sequential(lua_State *lua)
{
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

static int residual(lua_State *lua)
{
    struct module *body = (struct module *)check_thing(lua, 1, &module_class);
    return give_module(lua, nn_residual(engine_of(lua), module_keep(body)));
}

static int checkpointed(lua_State *lua)
{
    struct module *body = (struct module *)check_thing(lua, 1, &module_class);
    return give_module(lua, nn_checkpointed(engine_of(lua), module_keep(body)));
}

enum { DDP_MODEL = 1, DDP_BUCKET, DDP_VIEWS };

static int distributed(lua_State *lua)
{
    struct module *model = (struct module *)check_thing(lua, DDP_MODEL, &module_class);
    return give_module(lua, nn_distributed(engine_of(lua), module_keep(model),
                                           (uint64_t)integer(lua, DDP_BUCKET),
                                           lua_toboolean(lua, DDP_VIEWS)));
}

static void check_heads(lua_State *lua, lua_Integer size, lua_Integer heads)
{
    if (size % heads != 0) {
        luaL_error(lua, "features (%I) must be a multiple of heads (%I)", (LUAI_UACINT)size,
                   (LUAI_UACINT)heads);
    }
}

static int transformer(lua_State *lua)
{
    struct encoder shape = {.layers = integer(lua, 1),
                            .features = integer(lua, 2),
                            .heads = integer(lua, 3),
                            .hidden = integer(lua, 4),
                            .dropout = 0.1,
                            .gelu = lua_toboolean(lua, 5),
                            .norm_first = lua_toboolean(lua, 6)};
    shape.hidden = lua_isnil(lua, 4) ? 4 * shape.features : shape.hidden;
    check_heads(lua, shape.features, shape.heads);
    return give_module(lua, nn_transformer(engine_of(lua), &shape));
}

static int resnet50(lua_State *lua)
{
    return give_module(lua, nn_resnet50(engine_of(lua), integer(lua, 1)));
}

static int gpt(lua_State *lua)
{
    struct gpt shape = {.vocabulary = integer(lua, 1),
                        .features = integer(lua, 2),
                        .heads = integer(lua, 3),
                        .layers = integer(lua, 4),
                        .checkpoint = lua_toboolean(lua, 5),
                        .positions = integer(lua, 6),
                        .causal = lua_toboolean(lua, 7)};
    check_heads(lua, shape.features, shape.heads);
    return give_module(lua, nn_gpt(engine_of(lua), &shape));
}

static int gpt_block(lua_State *lua)
{
    int64_t size = integer(lua, 1), heads = integer(lua, 2);
    check_heads(lua, size, heads);
    return give_module(lua, nn_gpt_block(engine_of(lua), size, heads));
}

static int seq2seq(lua_State *lua)
{
    return give_module(
        lua, nn_seq2seq(engine_of(lua), integer(lua, 1), integer(lua, 2), integer(lua, 3)));
}

/* --- the table --------------------------------------------------------------------------- */

#define SIZE(name)       NEEDS_IN(name, INTEGER, 1, MAX_FEATURES)
#define NAMED_SIZE(name) NEEDS_NAMED(name, INTEGER, 1, MAX_FEATURES)
#define HEADS            NEEDS_NAMED("heads", INTEGER, 1, 1024)
#define LAYERS           NEEDS_NAMED("layers", INTEGER, 1, 1024)
#define EPSILON          CHECKED("eps", NUMBER, "1e-5", 0, 1)
#define CONVOLUTION(value)                                                                         \
    TAKES(SIZE("in_channels"), SIZE("out_channels"), NEEDS_IN("kernel", value, 1, MAX_WINDOW),     \
          OPTION_IN("stride", value, "1", 1, MAX_WINDOW),                                          \
          OPTION_IN("padding", value, "0", 0, MAX_WINDOW), OPTION("bias", TRUTH, "true"),          \
          OPTION_IN("dilation", value, "1", 1, MAX_WINDOW),                                        \
          OPTION_IN("groups", INTEGER, "1", 1, MAX_FEATURES))
#define POOL                                                                                       \
    TAKES(NEEDS_IN("kernel", PAIR, 1, MAX_WINDOW),                                                 \
          OPTION_IN("stride", PAIR, "kernel", 1, MAX_WINDOW),                                      \
          OPTION_IN("padding", PAIR, "0", 0, MAX_WINDOW))
#define RECURRENT                                                                                  \
    TAKES(SIZE("input"), SIZE("hidden"), OPTION_IN("layers", INTEGER, "1", 1, 32),                 \
          OPTION("bidirectional", TRUTH, "false"), OPTION("batch_first", TRUTH, "true"),           \
          OPTION_IN("dropout", NUMBER, "0", 0, 1))
#define MODULE(name, function, ...)                                                                \
    {                                                                                              \
        name, function, FUNCTION_CALL, STYLE_TABLE, TAKES(__VA_ARGS__)                             \
    }
#define PLAIN(name, function)                                                                      \
    {                                                                                              \
        name, function, FUNCTION_CALL, STYLE_TABLE, TAKES_NOTHING                                  \
    }

const struct script_function nn_functions[] = {
    MODULE("Linear", linear, SIZE("in_features"), SIZE("out_features"),
           OPTION("bias", TRUTH, "true")),
    {"Conv2d", conv2d, FUNCTION_CALL, STYLE_TABLE, CONVOLUTION(PAIR)},
    {"Conv1d", conv1d, FUNCTION_CALL, STYLE_TABLE, CONVOLUTION(INTEGER)},
    MODULE("BatchNorm2d", batch_norm, SIZE("channels"), EPSILON),
    MODULE("BatchNorm1d", batch_norm_1d, SIZE("channels"), EPSILON),
    MODULE("LayerNorm", layer_norm, SIZE("features"), EPSILON),
    MODULE("RMSNorm", rms_norm, SIZE("features"), EPSILON),
    MODULE("GroupNorm", group_norm, SIZE("groups"), SIZE("channels"), EPSILON),
    MODULE("ReLU", relu, OPTION("inplace", TRUTH, "false")),
    MODULE("LeakyReLU", leaky_relu,
           {.name = "negative_slope",
            .value = VALUE_NUMBER,
            .absent = "0.01",
            .is_checked_only = true},
           OPTION("inplace", TRUTH, "false")),
    MODULE("Dropout", dropout, MAY_TAKE_IN("p", NUMBER, "0.5", 0, 1)),
    MODULE("Flatten", flatten, MAY_TAKE("first", DIMENSION, "2"),
           MAY_TAKE("last", DIMENSION, "-1")),
    {"MaxPool2d", max_pool, FUNCTION_CALL, STYLE_TABLE, POOL},
    {"AvgPool2d", avg_pool, FUNCTION_CALL, STYLE_TABLE, POOL},
    {"AdaptiveAvgPool2d", adaptive_avg_pool, FUNCTION_CALL, STYLE_CALL,
     TAKES(MAY_TAKE_IN("size", PAIR, "1", 1, MAX_WINDOW))},
    MODULE("Upsample", upsample, OPTION_IN("size", PAIR, "nil", 1, 65536),
           OPTION_IN("scale_factor", NUMBER, "nil", 1e-3, 1024),
           OPTION("mode", TEXT, "\"nearest\"")),
    MODULE("Embedding", embedding, SIZE("entries"), SIZE("features")),
    PLAIN("Tanh", tanh_module),
    PLAIN("Sigmoid", sigmoid),
    PLAIN("GELU", gelu),
    PLAIN("SiLU", silu),
    MODULE(
        "Softmax", softmax,
        {.name = "dimension", .value = VALUE_DIMENSION, .absent = "-1", .is_checked_only = true}),
    {"LSTM", lstm, FUNCTION_CALL, STYLE_TABLE, RECURRENT},
    {"GRU", gru, FUNCTION_CALL, STYLE_TABLE, RECURRENT},
    MODULE("GRUCell", gru_cell, SIZE("input"), SIZE("hidden")),
    MODULE("TransformerEncoder", transformer, LAYERS, NAMED_SIZE("features"), HEADS,
           OPTION_IN("hidden", INTEGER, "4 * features", 1, 4 * MAX_FEATURES),
           OPTION("gelu", TRUTH, "false"), OPTION("norm_first", TRUTH, "false")),
    MODULE("resnet50", resnet50, OPTION_IN("classes", INTEGER, "1000", 1, MAX_FEATURES)),
    MODULE("gpt", gpt, NAMED_SIZE("vocabulary"), NAMED_SIZE("features"), HEADS, LAYERS,
           OPTION("checkpoint", TRUTH, "false"),
           OPTION_IN("positions", INTEGER, "0", 0, MAX_FEATURES), OPTION("causal", TRUTH, "false")),
    MODULE("GPTBlock", gpt_block, SIZE("features"), NEEDS_IN("heads", INTEGER, 1, 1024)),
    MODULE("Checkpointed", checkpointed, NEEDS("body", MODULE)),
    MODULE("DistributedDataParallel", distributed, NEEDS("model", MODULE),
           OPTION_IN("bucket", INTEGER, "0", 0, MAX_BUCKET),
           OPTION("gradient_as_bucket_view", TRUTH, "false")),
    MODULE("seq2seq", seq2seq, NAMED_SIZE("vocabulary"), NAMED_SIZE("features"),
           NAMED_SIZE("hidden")),
    {"Sequential", sequential, FUNCTION_CALL, STYLE_ITEMS, TAKES(NEEDS("modules", MODULES))},
    MODULE("Residual", residual, NEEDS("body", MODULE)),
    END_OF_FUNCTIONS,
};
