/* nn_more.c - modules that fewer models need: nn.ConvTranspose2d { 64, 32, 2, stride = 2 }. */
#include "library_parts.h"

#define MAX_FEATURES 16777216.0
#define MAX_WINDOW   1024

static int give_module(lua_State *lua, struct module *module)
{
    if (!module) {
        raise_failure(lua);
    }
    return push_result(lua, (struct thing *)module);
}

enum { IN = 1, OUT, KERNEL, STRIDE, PADDING, OUTPUT_PADDING, BIAS, DILATION, GROUPS };

static int conv_transpose(lua_State *lua)
{
    int64_t in = lua_tointeger(lua, IN), out = lua_tointeger(lua, OUT), output_padding[2] = {0, 0};
    struct conv conv = {{1, 1}, {1, 1}, {0, 0}, {1, 1}, lua_tointeger(lua, GROUPS)};
    pair_at(lua, KERNEL, conv.kernel);
    pair_at(lua, STRIDE, conv.stride);
    pair_at(lua, PADDING, conv.padding);
    pair_at(lua, OUTPUT_PADDING, output_padding);
    pair_at(lua, DILATION, conv.dilation);
    if (in % conv.groups != 0 || out % conv.groups != 0) {
        return luaL_error(lua, "groups: %I do not divide %I channels into equal parts, or not %I",
                          (LUAI_UACINT)conv.groups, (LUAI_UACINT)in, (LUAI_UACINT)out);
    }
    for (int i = 0; i < 2; i++) {
        if (output_padding[i] >= conv.stride[i] && output_padding[i] >= conv.dilation[i]) {
            return luaL_error(lua, "output_padding: %I is not smaller than stride or dilation",
                              (LUAI_UACINT)output_padding[i]);
        }
    }
    return give_module(lua, nn_conv_transpose2d(engine_of(lua), in, out, conv, output_padding,
                                                lua_toboolean(lua, BIAS)));
}

static int identity(lua_State *lua)
{
    return give_module(lua, nn_identity(engine_of(lua)));
}

static int elu(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_ELU));
}

static int softplus(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_SOFTPLUS));
}

static int mish(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_MISH));
}

static int hardswish(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_HARDSWISH));
}

static int relu6(lua_State *lua)
{
    return give_module(lua, nn_activation(engine_of(lua), ACTIVATION_RELU6));
}

static int deepcopy(lua_State *lua)
{
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    return give_module(lua, module_copy(engine_of(lua), module));
}

static int lstm_cell(lua_State *lua)
{
    return give_module(lua,
                       nn_lstm_cell(engine_of(lua), lua_tointeger(lua, 1), lua_tointeger(lua, 2)));
}

static int instance_norm(lua_State *lua)
{
    return give_module(
        lua, nn_instance_norm(engine_of(lua), lua_tointeger(lua, 1), lua_toboolean(lua, 3)));
}

static int llama_block(lua_State *lua)
{
    struct llama_block shape = {.features = lua_tointeger(lua, 1),
                                .heads = lua_tointeger(lua, 2),
                                .groups = lua_tointeger(lua, 3),
                                .hidden = lua_tointeger(lua, 4),
                                .length = lua_tointeger(lua, 5)};
    if (shape.features % (2 * shape.heads) != 0 || shape.heads % shape.groups != 0) {
        return luaL_error(lua, "nn.LlamaBlock: heads must have an even share of the features, and "
                               "groups must divide them");
    }
    return give_module(lua, nn_llama_block(engine_of(lua), &shape));
}

#define SIZE(name)   NEEDS_IN(name, INTEGER, 1, MAX_FEATURES)
#define WINDOW(name) OPTION_IN(name, PAIR, "1", 1, MAX_WINDOW)
#define MARGIN(name) OPTION_IN(name, PAIR, "0", 0, MAX_WINDOW)

const struct script_function nn_more_functions[] = {
    {"ConvTranspose2d", conv_transpose, FUNCTION_CALL, STYLE_TABLE,
     TAKES(SIZE("in_channels"), SIZE("out_channels"), NEEDS_IN("kernel", PAIR, 1, MAX_WINDOW),
           WINDOW("stride"), MARGIN("padding"), MARGIN("output_padding"),
           OPTION("bias", TRUTH, "true"), WINDOW("dilation"),
           OPTION_IN("groups", INTEGER, "1", 1, MAX_FEATURES))},
    {"ELU", elu, FUNCTION_CALL, STYLE_TABLE, TAKES(CHECKED("alpha", NUMBER, "1.0", 0, 0))},
    {"Softplus", softplus, FUNCTION_CALL, STYLE_TABLE, TAKES_NOTHING},
    {"Mish", mish, FUNCTION_CALL, STYLE_TABLE, TAKES_NOTHING},
    {"Hardswish", hardswish, FUNCTION_CALL, STYLE_TABLE, TAKES_NOTHING},
    {"ReLU6", relu6, FUNCTION_CALL, STYLE_TABLE, TAKES_NOTHING},
    {"Identity", identity, FUNCTION_CALL, STYLE_TABLE, TAKES_NOTHING},
    {"LlamaBlock", llama_block, FUNCTION_CALL, STYLE_TABLE,
     TAKES(SIZE("features"), NEEDS_IN("heads", INTEGER, 1, 1024),
           NEEDS_NAMED("groups", INTEGER, 1, 1024), NEEDS_NAMED("hidden", INTEGER, 1, MAX_FEATURES),
           NEEDS_NAMED("length", INTEGER, 1, MAX_FEATURES))},
    {"LSTMCell", lstm_cell, FUNCTION_CALL, STYLE_TABLE, TAKES(SIZE("input"), SIZE("hidden"))},
    {"InstanceNorm2d", instance_norm, FUNCTION_CALL, STYLE_TABLE,
     TAKES(SIZE("channels"), CHECKED("eps", NUMBER, "1e-5", 0, 1),
           OPTION("affine", TRUTH, "false"))},
    END_OF_FUNCTIONS,
};

const struct script_function copy_functions[] = {
    {"deepcopy", deepcopy, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("module", MODULE))},
    END_OF_FUNCTIONS,
};
