/* distributed.c - training over several ranks, as one of them sees it: dist.init_process_group { },
 * fully_shard(module). */
#include "gmd_sharded.h"
#include "library_parts.h"

#include <string.h>

#define MOST_RANKS 65536

enum { WORLD_SIZE = 1, RANK };

static int init_process_group(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    lua_Integer ranks = lua_tointeger(lua, WORLD_SIZE), rank = lua_tointeger(lua, RANK);
    if (engine->ranks > 0) {
        return luaL_error(lua, "dist.init_process_group: the process group is there already");
    }
    if (rank >= ranks) {
        return luaL_error(lua,
                          "dist.init_process_group: rank: they count from 0, and %I is not below "
                          "world_size, %I",
                          (LUAI_UACINT)rank, (LUAI_UACINT)ranks);
    }
    engine->ranks = (uint64_t)ranks;
    engine->rank = (uint64_t)rank;
    return 0;
}

const struct script_function dist_functions[] = {
    {"init_process_group", init_process_group, FUNCTION_STATEMENT, STYLE_TABLE,
     TAKES(NEEDS_NAMED("world_size", INTEGER, 1, MOST_RANKS),
           OPTION_IN("rank", INTEGER, "0", 0, MOST_RANKS - 1))},
    END_OF_FUNCTIONS,
};

/* --- fully_shard ------------------------------------------------------------------------- */

static struct module *check_module(lua_State *lua)
{
    return (struct module *)check_thing(lua, 1, &module_class);
}

enum { RESHARD = 2, PARAM_DTYPE, REDUCE_DTYPE, OUTPUT_DTYPE, CAST_INPUTS, MESH, CPU_OFFLOAD };

static enum dtype floating_at(lua_State *lua, int index, const char *name)
{
    enum dtype dtype = dtype_at(lua, index, DTYPES);
    if (dtype != DTYPES && !dtype_is_floating(dtype)) {
        luaL_error(lua, "fully_shard: %s: a floating type expected, got %s", name,
                   dtype_name(dtype));
    }
    return dtype;
}

/* Replicas and shards of all ranks; 0: there is one dimension of ranks. */
static uint64_t replicas_at(lua_State *lua, int index)
{
    int64_t mesh[2] = {0, 0};
    pair_at(lua, index, mesh);
    uint64_t ranks = engine_of(lua)->ranks;
    if (!lua_isnil(lua, index) && (uint64_t)mesh[0] * (uint64_t)mesh[1] != ranks) {
        luaL_error(lua, "fully_shard: mesh: %I times %I are not the %I ranks that there are",
                   (LUAI_UACINT)mesh[0], (LUAI_UACINT)mesh[1], (LUAI_UACINT)ranks);
    }
    return (uint64_t)mesh[0];
}

static int fully_shard(lua_State *lua)
{
    struct module *module = check_module(lua);
    struct sharded_options options = {
        .reshard = lua_isnil(lua, RESHARD)       ? RESHARD_BUT_THE_ROOT
                   : lua_toboolean(lua, RESHARD) ? RESHARD_ALWAYS
                                                 : RESHARD_NEVER,
        .post_forward_ranks = (uint64_t)lua_tointeger(lua, RESHARD),
        .replicas = replicas_at(lua, MESH),
        .offloads = lua_toboolean(lua, CPU_OFFLOAD),
        .param_dtype = floating_at(lua, PARAM_DTYPE, "param_dtype"),
        .reduce_dtype = floating_at(lua, REDUCE_DTYPE, "reduce_dtype"),
        .output_dtype = floating_at(lua, OUTPUT_DTYPE, "output_dtype"),
        .casts_inputs = lua_toboolean(lua, CAST_INPUTS)};
    sharded_make(engine_of(lua), module, &options);
    raise_failure(lua);
    return push_result(lua, thing_keep(&module->thing));
}

const struct script_function sharding_functions[] = {
    {"fully_shard", fully_shard, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("module", MODULE),
           OPTION_IN("reshard_after_forward", SWITCH, "nil", 1, MOST_RANKS),
           OPTION("param_dtype", DTYPE, "nil"), OPTION("reduce_dtype", DTYPE, "nil"),
           OPTION("output_dtype", DTYPE, "nil"), OPTION("cast_forward_inputs", TRUTH, "true"),
           OPTION_IN("mesh", PAIR, "nil", 1, MOST_RANKS), OPTION("cpu_offload", TRUTH, "false"))},
    END_OF_FUNCTIONS,
};

/* --- methods of modules ------------------------------------------------------------------ */

static int told(lua_State *lua, bool is_sharded, const char *name)
{
    if (!is_sharded) {
        return luaL_error(lua, "%s: fully_shard() was not called of the module", name);
    }
    raise_failure(lua);
    return 0;
}

static int set(lua_State *lua, enum sharded_setting setting, const char *name)
{
    return told(lua, sharded_set(engine_of(lua), check_module(lua), setting, lua_toboolean(lua, 2)),
                name);
}

static int set_sync(lua_State *lua)
{
    return set(lua, SHARDED_SYNC, "set_requires_gradient_sync");
}

static int set_reshard_after_backward(lua_State *lua)
{
    return set(lua, SHARDED_RESHARD_AFTER_BACKWARD, "set_reshard_after_backward");
}

static int set_reshard_after_forward(lua_State *lua)
{
    return set(lua, SHARDED_RESHARD_AFTER_FORWARD, "set_reshard_after_forward");
}

static int unshard(lua_State *lua)
{
    return told(lua, sharded_unshard(engine_of(lua), check_module(lua)), "unshard");
}

static int reshard(lua_State *lua)
{
    return told(lua, sharded_reshard(engine_of(lua), check_module(lua)), "reshard");
}

#define MOST_AHEAD 1024

static int set_prefetch(lua_State *lua, enum sharded_way way)
{
    struct module *modules[MOST_AHEAD];
    size_t count = lua_rawlen(lua, 2);
    if (count > MOST_AHEAD) {
        return luaL_error(lua, "at most %d modules can be gathered ahead", MOST_AHEAD);
    }
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(lua, 2, (lua_Integer)i + 1);
        modules[i] = (struct module *)check_thing(lua, -1, &module_class);
        lua_pop(lua, 1);
    }
    sharded_set_prefetch(engine_of(lua), check_module(lua), way, modules, count);
    raise_failure(lua);
    return 0;
}

static int set_forward_prefetch(lua_State *lua)
{
    return set_prefetch(lua, SHARDED_FORWARD);
}

static int set_backward_prefetch(lua_State *lua)
{
    return set_prefetch(lua, SHARDED_BACKWARD);
}

#define AHEAD(name, function)                                                                      \
    {                                                                                              \
        name, function, FUNCTION_STATEMENT, STYLE_CALL, TAKES(NEEDS("modules", MODULES))           \
    }
#define SETTING(name, function)                                                                    \
    {                                                                                              \
        name, function, FUNCTION_STATEMENT, STYLE_CALL, TAKES(NEEDS("on", TRUTH))                  \
    }

const struct script_function sharded_methods[] = {
    SETTING("set_requires_gradient_sync", set_sync),
    SETTING("set_reshard_after_backward", set_reshard_after_backward),
    SETTING("set_reshard_after_forward", set_reshard_after_forward),
    AHEAD("set_modules_to_forward_prefetch", set_forward_prefetch),
    AHEAD("set_modules_to_backward_prefetch", set_backward_prefetch),
    {"unshard", unshard, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING},
    {"reshard", reshard, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING},
    END_OF_FUNCTIONS,
};
