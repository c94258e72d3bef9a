/* scaler.c - GradScaler() and its methods. */
#include "gmd_grad_scaler.h"
#include "library_parts.h"

static int new_scaler(lua_State *lua)
{
    struct grad_scaler *scaler = grad_scaler_new(engine_of(lua), lua_toboolean(lua, 1));
    return push_result(lua, (struct thing *)scaler);
}

const struct script_function scaler_functions[] = {
    {"GradScaler", new_scaler, FUNCTION_CALL, STYLE_CALL, TAKES(OPTION("enabled", TRUTH, "true"))},
    END_OF_FUNCTIONS,
};

static struct grad_scaler *check_scaler(lua_State *lua)
{
    return (struct grad_scaler *)check_thing(lua, 1, &grad_scaler_class);
}

static struct optimizer *check_optimizer(lua_State *lua)
{
    return (struct optimizer *)check_thing(lua, 2, &optimizer_class);
}

static int scale(lua_State *lua)
{
    return give_tensor(lua,
                       grad_scaler_scale(engine_of(lua), check_scaler(lua), check_tensor(lua, 2)));
}

static int unscale(lua_State *lua)
{
    grad_scaler_unscale(engine_of(lua), check_scaler(lua), check_optimizer(lua));
    raise_failure(lua);
    return 0;
}

static int step(lua_State *lua)
{
    grad_scaler_step(engine_of(lua), check_scaler(lua), check_optimizer(lua));
    raise_failure(lua);
    return 0;
}

static int update(lua_State *lua)
{
    grad_scaler_update(engine_of(lua), check_scaler(lua));
    raise_failure(lua);
    return 0;
}

#define STEPPED TAKES(NEEDS("optimizer", OPTIMIZER))

const struct script_function scaler_methods[] = {
    {"scale", scale, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("loss", TENSOR))},
    {"unscale_", unscale, FUNCTION_STATEMENT, STYLE_CALL, STEPPED},
    {"step", step, FUNCTION_STATEMENT, STYLE_CALL, STEPPED},
    {"update", update, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING},
    END_OF_FUNCTIONS,
};
