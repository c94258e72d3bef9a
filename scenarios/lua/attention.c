/* attention.c - scaled_dot_product_attention, and the modules that are made of it. */
#include "gmd_dot_attention.h"
#include "library_parts.h"

#include <string.h>

/* --- the function ------------------------------------------------------------------------ */

enum { QUERY = 1, KEY, VALUE, MASK, DROPOUT, CAUSAL, GROUPED, BACKEND };

static enum attention_backend backend_at(lua_State *lua, int index)
{
    const char *name = lua_tostring(lua, index);
    for (enum attention_backend i = 0; i < ATTENTION_BACKENDS; i++) {
        if (strcmp(name, attention_backend_name(i)) == 0) {
            return i;
        }
    }
    if (strcmp(name, "auto") != 0) {
        luaL_error(lua,
                   "scaled_dot_product_attention: backend: auto, cudnn, flash, efficient or math "
                   "expected, got \"%s\"",
                   name);
    }
    return ATTENTION_ANY;
}

static int attention(lua_State *lua)
{
    struct attention how = {
        .mask = lua_isnil(lua, MASK) ? NULL : check_tensor(lua, MASK),
        .dropout = lua_tonumber(lua, DROPOUT),
        .causal = lua_toboolean(lua, CAUSAL),
        .grouped = lua_toboolean(lua, GROUPED),
        .backend = backend_at(lua, BACKEND),
    };
    return give_tensor(lua, op_attention(engine_of(lua), check_tensor(lua, QUERY),
                                         check_tensor(lua, KEY), check_tensor(lua, VALUE), &how));
}

const struct script_function attention_functions[] = {
    {"scaled_dot_product_attention", attention, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("query", TENSOR), NEEDS("key", TENSOR), NEEDS("value", TENSOR),
           OPTION("attn_mask", TENSOR, "nil"), OPTION_IN("dropout_p", NUMBER, "0", 0, 1),
           OPTION("is_causal", TRUTH, "false"), OPTION("enable_gqa", TRUTH, "false"),
           OPTION("backend", TEXT, "\"auto\""), CHECKED("scale", NUMBER, "nil", 0, 0))},
    END_OF_FUNCTIONS,
};

/* --- the modules ------------------------------------------------------------------------- */

static int give_module(lua_State *lua, struct module *module)
{
    if (!module) {
        raise_failure(lua);
    }
    return push_result(lua, (struct thing *)module);
}

static void check_heads(lua_State *lua, int64_t features, int64_t heads)
{
    if (features % heads != 0) {
        luaL_error(lua, "features (%I) must be a multiple of heads (%I)", (LUAI_UACINT)features,
                   (LUAI_UACINT)heads);
    }
}

static int multihead(lua_State *lua)
{
    struct multihead shape = {.features = lua_tointeger(lua, 1),
                              .heads = lua_tointeger(lua, 2),
                              .dropout = lua_tonumber(lua, 3),
                              .bias = lua_toboolean(lua, 4),
                              .batch_first = lua_toboolean(lua, 5),
                              .gives_weights = lua_toboolean(lua, 6)};
    check_heads(lua, shape.features, shape.heads);
    return give_module(lua, nn_multihead_attention(engine_of(lua), &shape));
}

/* Features, heads and the options of a layer, from `first` on. */
static struct encoder encoder_at(lua_State *lua, int first)
{
    struct encoder shape = {.features = lua_tointeger(lua, first),
                            .heads = lua_tointeger(lua, first + 1),
                            .hidden = lua_tointeger(lua, first + 2),
                            .dropout = lua_tonumber(lua, first + 3),
                            .gelu = lua_toboolean(lua, first + 4),
                            .norm_first = lua_toboolean(lua, first + 5)};
    check_heads(lua, shape.features, shape.heads);
    return shape;
}

static int encoder_layer(lua_State *lua)
{
    struct encoder shape = encoder_at(lua, 1);
    return give_module(lua, nn_encoder_layer(engine_of(lua), &shape));
}

static int decoder_layer(lua_State *lua)
{
    struct encoder shape = encoder_at(lua, 1);
    return give_module(lua, nn_decoder_layer(engine_of(lua), &shape));
}

static int decoder(lua_State *lua)
{
    struct encoder shape = encoder_at(lua, 2);
    shape.layers = lua_tointeger(lua, 1);
    return give_module(lua, nn_decoder(engine_of(lua), &shape));
}

#define MAX_FEATURES 16777216.0
#define FEATURES     NEEDS_IN("features", INTEGER, 1, MAX_FEATURES)
#define HEADS        NEEDS_IN("heads", INTEGER, 1, 1024)
#define LAYER                                                                                      \
    OPTION_IN("hidden", INTEGER, "2048", 1, MAX_FEATURES),                                         \
        OPTION_IN("dropout", NUMBER, "0.1", 0, 1), OPTION("gelu", TRUTH, "false"),                 \
        OPTION("norm_first", TRUTH, "false")

const struct script_function nn_attention_functions[] = {
    {"MultiheadAttention", multihead, FUNCTION_CALL, STYLE_TABLE,
     TAKES(FEATURES, HEADS, OPTION_IN("dropout", NUMBER, "0", 0, 1), OPTION("bias", TRUTH, "true"),
           OPTION("batch_first", TRUTH, "false"), OPTION("need_weights", TRUTH, "true"))},
    {"TransformerEncoderLayer", encoder_layer, FUNCTION_CALL, STYLE_TABLE,
     TAKES(FEATURES, HEADS, LAYER)},
    {"TransformerDecoderLayer", decoder_layer, FUNCTION_CALL, STYLE_TABLE,
     TAKES(FEATURES, HEADS, LAYER)},
    {"TransformerDecoder", decoder, FUNCTION_CALL, STYLE_TABLE,
     TAKES(NEEDS_NAMED("layers", INTEGER, 1, 1024),
           NEEDS_NAMED("features", INTEGER, 1, MAX_FEATURES),
           NEEDS_NAMED("heads", INTEGER, 1, 1024), LAYER)},
    END_OF_FUNCTIONS,
};
