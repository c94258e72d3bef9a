/* optim.c - optimizers: optim.SGD { model, lr = 0.1 }, and their methods. */
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "library_parts.h"

#include <math.h>

/* A module, a tensor, or a list of such. */
static void add_trainable(lua_State *lua, struct optimizer *optimizer, struct thing *thing)
{
    struct engine *engine = engine_of(lua);
    if (thing->class == &module_class) {
        optimizer_add_module(engine, optimizer, (struct module *)thing);
    } else if (thing->class == &list_class) {
        struct list *list = (struct list *)thing;
        for (size_t i = 0; i < list_count(list); i++) {
            struct thing *each = list_at(list, i);
            luaL_argcheck(lua, each->class != &list_class, 1, "a list of lists is not accepted");
            add_trainable(lua, optimizer, each);
        }
    } else if (thing->class == &tensor_class) {
        optimizer_add(engine, optimizer, (struct tensor *)thing);
    } else {
        luaL_argerror(lua, 1, "modules, tensors or lists of them expected");
    }
}

enum { TRAINABLES = 1, WEIGHT_DECAY, FOREACH, FUSED, MOMENTUM };

static int new_optimizer(lua_State *lua, enum optimizer_method method, bool adds_decay,
                         bool has_momentum)
{
    struct optimizer *optimizer = optimizer_new(engine_of(lua), method, has_momentum);
    if (adds_decay && lua_tonumber(lua, WEIGHT_DECAY) > 0) {
        optimizer_decay(optimizer);
    }
    if (lua_toboolean(lua, FUSED)) {
        optimizer_implementation(optimizer, OPTIMIZER_FUSED);
    } else if (!lua_toboolean(lua, FOREACH)) {
        optimizer_implementation(optimizer, OPTIMIZER_FOR_LOOP);
    }
    push_result(lua, (struct thing *)optimizer);
    lua_Integer count = (lua_Integer)lua_rawlen(lua, TRAINABLES);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(lua, TRAINABLES, i);
        add_trainable(lua, optimizer, thing_at(lua, -1));
        lua_pop(lua, 1);
    }
    return 1;
}

static int sgd(lua_State *lua)
{
    return new_optimizer(lua, OPTIMIZER_SGD, true, lua_tonumber(lua, MOMENTUM) > 0);
}

static int adam(lua_State *lua)
{
    return new_optimizer(lua, OPTIMIZER_ADAM, true, false);
}

static int adamw(lua_State *lua)
{
    return new_optimizer(lua, OPTIMIZER_ADAM, false, false);
}

#define TRAINED               NEEDS("parameters", TRAINABLES)
#define IMPLEMENTATION        OPTION("foreach", TRUTH, "true"), OPTION("fused", TRUTH, "false")
#define LEARNING_RATE(absent) CHECKED("lr", NUMBER, absent, 0, HUGE_VAL)
#define MOMENTS                                                                                    \
    CHECKED("betas", CHOICES, "{ 0.9, 0.999 }", 0, 0), CHECKED("eps", NUMBER, "1e-8", 0, 1)

const struct script_function optim_functions[] = {
    {"SGD", sgd, FUNCTION_CALL, STYLE_ITEMS,
     TAKES(TRAINED, OPTION_IN("weight_decay", NUMBER, "0", 0, HUGE_VAL), IMPLEMENTATION,
           OPTION_IN("momentum", NUMBER, "0", 0, 1), LEARNING_RATE("1e-3"))},
    {"Adam", adam, FUNCTION_CALL, STYLE_ITEMS,
     TAKES(TRAINED, OPTION_IN("weight_decay", NUMBER, "0", 0, HUGE_VAL), IMPLEMENTATION,
           LEARNING_RATE("1e-3"), MOMENTS)},
    {"AdamW", adamw, FUNCTION_CALL, STYLE_ITEMS,
     TAKES(TRAINED, CHECKED("weight_decay", NUMBER, "0.01", 0, HUGE_VAL), IMPLEMENTATION,
           LEARNING_RATE("1e-3"), MOMENTS)},
    END_OF_FUNCTIONS,
};

/* --- methods ----------------------------------------------------------------------------- */

static struct optimizer *check_optimizer(lua_State *lua)
{
    return (struct optimizer *)check_thing(lua, 1, &optimizer_class);
}

static int step(lua_State *lua)
{
    optimizer_step(engine_of(lua), check_optimizer(lua));
    return 0;
}

static int zero_grad(lua_State *lua)
{
    optimizer_zero_grad(engine_of(lua), check_optimizer(lua), lua_toboolean(lua, 2));
    return 0;
}

static int nbytes(lua_State *lua)
{
    lua_pushinteger(lua, (lua_Integer)optimizer_bytes(check_optimizer(lua)));
    return 1;
}

const struct script_function optimizer_methods[] = {
    {"nbytes", nbytes, FUNCTION_QUERY, STYLE_CALL, TAKES_NOTHING},
    {"step", step, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING},
    {"zero_grad", zero_grad, FUNCTION_STATEMENT, STYLE_CALL,
     TAKES(OPTION("set_to_none", TRUTH, "true"))},
    END_OF_FUNCTIONS,
};
