/* graphs.c - CUDA graphs in scripts: cuda.CUDAGraph(), cuda.graph(g, function() ... end). */
#include "gmd_capture.h"
#include "library_parts.h"

static struct cuda_graph *check_graph(lua_State *lua)
{
    return (struct cuda_graph *)check_thing(lua, 1, &cuda_graph_class);
}

static int new_graph(lua_State *lua)
{
    return push_result(lua, (struct thing *)cuda_graph_new(engine_of(lua)));
}

static int new_pool(lua_State *lua)
{
    uint32_t pool = capture_new_pool(engine_of(lua));
    if (pool == CAPTURE_POOLS) {
        return luaL_error(lua, "cuda.graph_pool_handle: at most %d pools at a time", CAPTURE_POOLS);
    }
    lua_pushinteger(lua, pool);
    return 1;
}

enum { GRAPH = 1, BLOCK, POOL };

/* The graph is held meanwhile: the function may let go of its variable. */
static int on_graph(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct cuda_graph *graph = check_graph(lua);
    uint32_t pool = lua_isnil(lua, POOL) ? CAPTURE_POOLS : (uint32_t)lua_tointeger(lua, POOL);
    int top = lua_gettop(lua);
    capture_begin(engine, graph, pool);
    raise_failure(lua);
    thing_keep((struct thing *)graph);
    int status = binding_call_block(lua, BLOCK);
    capture_end(engine, graph);
    thing_drop(engine, (struct thing *)graph);
    return status == LUA_OK ? lua_gettop(lua) - top : lua_error(lua);
}

const struct script_function graph_functions[] = {
    {"CUDAGraph", new_graph, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"graph_pool_handle", new_pool, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"graph", on_graph, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("graph", GRAPH), NEEDS("block", FUNCTION),
           OPTION_IN("pool", INTEGER, "nil", 0, CAPTURE_POOLS - 1))},
    END_OF_FUNCTIONS,
};

/* --- methods ----------------------------------------------------------------------------- */

static int replay(lua_State *lua)
{
    cuda_graph_replay(engine_of(lua), check_graph(lua));
    raise_failure(lua);
    return 0;
}

static int reset(lua_State *lua)
{
    if (capture_allows(engine_of(lua), "reset")) {
        cuda_graph_reset(engine_of(lua), check_graph(lua));
    }
    raise_failure(lua);
    return 0;
}

static int pool(lua_State *lua)
{
    uint32_t number = cuda_graph_pool(check_graph(lua));
    if (number == CAPTURE_POOLS) {
        return luaL_error(lua, "pool: the graph was not captured");
    }
    lua_pushinteger(lua, number);
    return 1;
}

const struct script_function graph_methods[] = {
    {"replay", replay, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING},
    {"reset", reset, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING},
    {"pool", pool, FUNCTION_QUERY, STYLE_CALL, TAKES_NOTHING},
    END_OF_FUNCTIONS,
};
