/* blocks.c - blocks of code: no_grad(function() ... end). What the function returns is the value of
 * the block. */
#include "gmd_autocast.h"
#include "gmd_checkpoint.h"
#include "library_parts.h"

/* `top`: of the stack before the function was called. */
static int finish(lua_State *lua, int status, int top)
{
    return status == LUA_OK ? lua_gettop(lua) - top : lua_error(lua);
}

static int no_grad(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    bool before = engine->grad_enabled;
    int top = lua_gettop(lua);
    engine->grad_enabled = false;
    int status = binding_call_block(lua, 1);
    engine->grad_enabled = before;
    return finish(lua, status, top);
}

/* autocast("bfloat16", function() ... end) */
static int autocast(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    enum dtype dtype = dtype_at(lua, 1, DTYPE_BFLOAT16);
    luaL_argcheck(lua, dtype_bytes(dtype) == 2, 1, "\"bfloat16\" or \"float16\" expected");
    int top = lua_gettop(lua);
    autocast_begin(engine, dtype);
    int status = binding_call_block(lua, 2);
    autocast_end(engine);
    return finish(lua, status, top);
}

static int checkpoint(lua_State *lua)
{
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    return give_tensor(lua, checkpoint_apply(engine_of(lua), module, check_tensor(lua, 2)));
}

const struct script_function block_functions[] = {
    {"no_grad", no_grad, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("block", FUNCTION))},
    {"autocast", autocast, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("dtype", DTYPE), NEEDS("block", FUNCTION))},
    {"checkpoint", checkpoint, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("module", MODULE), NEEDS("input", TENSOR))},
    {"hold", binding_hold, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("value", HELD))},
    END_OF_FUNCTIONS,
};
