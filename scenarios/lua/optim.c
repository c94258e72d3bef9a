/* optim.c - optimizers: optim.SGD { model, lr = 0.1 }, and their methods. */
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "library_parts.h"

#include <math.h>
#include <string.h>

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

/* Items are trained from here on, as a group of their own. */
static void add_group(lua_State *lua, struct optimizer *optimizer, int items, bool decays)
{
    optimizer_group(engine_of(lua), optimizer, decays);
    lua_Integer count = (lua_Integer)lua_rawlen(lua, items);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(lua, items, i);
        add_trainable(lua, optimizer, thing_at(lua, -1));
        lua_pop(lua, 1);
    }
}

enum { TRAINABLES = 1, WEIGHT_DECAY, FOREACH, OWN };

static int new_optimizer(lua_State *lua, struct optimizer_options options)
{
    if (!lua_toboolean(lua, FOREACH) && options.implementation == OPTIMIZER_FOREACH) {
        options.implementation = OPTIMIZER_FOR_LOOP;
    }
    struct optimizer *optimizer = optimizer_new(engine_of(lua), &options);
    push_result(lua, (struct thing *)optimizer);
    add_group(lua, optimizer, TRAINABLES, lua_tonumber(lua, WEIGHT_DECAY) > 0);
    return 1;
}

/* One kernel takes precedence over many tensors at once. */
static enum optimizer_implementation fused_at(lua_State *lua, int index)
{
    return lua_toboolean(lua, index) ? OPTIMIZER_FUSED : OPTIMIZER_FOREACH;
}

static int sgd(lua_State *lua)
{
    struct optimizer_options options = {.method = OPTIMIZER_SGD,
                                        .implementation = fused_at(lua, OWN),
                                        .momentum = lua_tonumber(lua, OWN + 1) > 0,
                                        .nesterov = lua_toboolean(lua, OWN + 2)};
    if (options.nesterov && !options.momentum) {
        return luaL_error(lua, "optim.SGD: nesterov: a momentum is needed");
    }
    return new_optimizer(lua, options);
}

static struct optimizer_options adam_at(lua_State *lua, bool decays_in_place)
{
    return (struct optimizer_options){.method = OPTIMIZER_ADAM,
                                      .implementation = fused_at(lua, OWN),
                                      .decays_in_place = decays_in_place,
                                      .amsgrad = lua_toboolean(lua, OWN + 1)};
}

static int adam(lua_State *lua)
{
    return new_optimizer(lua, adam_at(lua, false));
}

static int adamw(lua_State *lua)
{
    return new_optimizer(lua, adam_at(lua, true));
}

static int rmsprop(lua_State *lua)
{
    return new_optimizer(lua, (struct optimizer_options){.method = OPTIMIZER_RMSPROP,
                                                         .momentum = lua_tonumber(lua, OWN) > 0,
                                                         .centered = lua_toboolean(lua, OWN + 1)});
}

static int adagrad(lua_State *lua)
{
    return new_optimizer(lua, (struct optimizer_options){.method = OPTIMIZER_ADAGRAD});
}

/* --- ZeRO stage 1 ------------------------------------------------------------------------ */

enum { ZERO_CLASS = OWN, ZERO_BUCKETS, ZERO_FUSED, ZERO_MOMENTUM, ZERO_NESTEROV, ZERO_AMSGRAD };

/* Options of another class are refused, as its constructor would. */
static struct optimizer_options zero_options(lua_State *lua, const char *class)
{
    bool is_sgd = strcmp(class, "SGD") == 0, decays_in_place = strcmp(class, "AdamW") == 0;
    if (!is_sgd && !decays_in_place && strcmp(class, "Adam") != 0) {
        luaL_error(lua,
                   "optim.ZeroRedundancyOptimizer: optimizer_class: SGD, Adam or AdamW "
                   "expected, got \"%s\"",
                   class);
    }
    if (is_sgd ? lua_toboolean(lua, ZERO_AMSGRAD)
               : lua_tonumber(lua, ZERO_MOMENTUM) > 0 || lua_toboolean(lua, ZERO_NESTEROV)) {
        luaL_error(lua, "optim.ZeroRedundancyOptimizer: %s has no %s", class,
                   is_sgd ? "amsgrad" : "momentum");
    }
    return (struct optimizer_options){.method = is_sgd ? OPTIMIZER_SGD : OPTIMIZER_ADAM,
                                      .implementation = fused_at(lua, ZERO_FUSED),
                                      .decays_in_place = decays_in_place,
                                      .momentum = lua_tonumber(lua, ZERO_MOMENTUM) > 0,
                                      .nesterov = lua_toboolean(lua, ZERO_NESTEROV),
                                      .amsgrad = lua_toboolean(lua, ZERO_AMSGRAD)};
}

static int zero_redundancy(lua_State *lua)
{
    struct optimizer_options options = zero_options(lua, lua_tostring(lua, ZERO_CLASS));
    if (engine_of(lua)->ranks == 0) {
        return luaL_error(lua, "optim.ZeroRedundancyOptimizer: there are no ranks; "
                               "dist.init_process_group { world_size = 4 } comes first");
    }
    if (options.nesterov && !options.momentum) {
        return luaL_error(lua, "optim.ZeroRedundancyOptimizer: nesterov: a momentum is needed");
    }
    int given = new_optimizer(lua, options);
    struct optimizer *optimizer = (struct optimizer *)check_thing(lua, -1, &optimizer_class);
    optimizer_share_out(engine_of(lua), optimizer, lua_toboolean(lua, ZERO_BUCKETS));
    raise_failure(lua);
    return given;
}

#define TRAINED               NEEDS("parameters", TRAINABLES)
#define DECAY                 OPTION_IN("weight_decay", NUMBER, "0", 0, HUGE_VAL)
#define AT_ONCE               OPTION("foreach", TRUTH, "true")
#define ONE_KERNEL            OPTION("fused", TRUTH, "false")
#define LEARNING_RATE(absent) CHECKED("lr", NUMBER, absent, 0, HUGE_VAL)
#define EPSILON(absent)       CHECKED("eps", NUMBER, absent, 0, 1)
#define BETAS                 CHECKED("betas", CHOICES, "{ 0.9, 0.999 }", 0, 0)
#define ADAM(name, function, decay)                                                                \
    {                                                                                              \
        name, function, FUNCTION_CALL, STYLE_ITEMS,                                                \
            TAKES(TRAINED, decay, AT_ONCE, ONE_KERNEL, OPTION("amsgrad", TRUTH, "false"),          \
                  LEARNING_RATE("1e-3"), BETAS, EPSILON("1e-8"))                                   \
    }

const struct script_function optim_functions[] = {
    {"SGD", sgd, FUNCTION_CALL, STYLE_ITEMS,
     TAKES(TRAINED, DECAY, AT_ONCE, ONE_KERNEL, OPTION_IN("momentum", NUMBER, "0", 0, 1),
           OPTION("nesterov", TRUTH, "false"), LEARNING_RATE("1e-3"))},
    ADAM("Adam", adam, DECAY),
    ADAM("AdamW", adamw, CHECKED("weight_decay", NUMBER, "0.01", 0, HUGE_VAL)),
    {"RMSprop", rmsprop, FUNCTION_CALL, STYLE_ITEMS,
     TAKES(TRAINED, DECAY, AT_ONCE, OPTION_IN("momentum", NUMBER, "0", 0, 1),
           OPTION("centered", TRUTH, "false"), LEARNING_RATE("1e-2"),
           CHECKED("alpha", NUMBER, "0.99", 0, 1), EPSILON("1e-8"))},
    {"Adagrad", adagrad, FUNCTION_CALL, STYLE_ITEMS,
     TAKES(TRAINED, DECAY, AT_ONCE, LEARNING_RATE("1e-2"),
           CHECKED("lr_decay", NUMBER, "0", 0, HUGE_VAL), EPSILON("1e-10"))},
    {"ZeroRedundancyOptimizer", zero_redundancy, FUNCTION_CALL, STYLE_ITEMS,
     TAKES(TRAINED, DECAY, AT_ONCE,
           {.name = "optimizer_class", .value = VALUE_TEXT, .by_name = true},
           OPTION("parameters_as_bucket_view", TRUTH, "false"), ONE_KERNEL,
           OPTION_IN("momentum", NUMBER, "0", 0, 1), OPTION("nesterov", TRUTH, "false"),
           OPTION("amsgrad", TRUTH, "false"), LEARNING_RATE("1e-3"), BETAS, EPSILON("1e-8"))},
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

static int add_param_group(lua_State *lua)
{
    if (optimizer_is_shared_out(check_optimizer(lua))) {
        return luaL_error(lua, "add_param_group: a ZeroRedundancyOptimizer has one group");
    }
    add_group(lua, check_optimizer(lua), 2, lua_tonumber(lua, 3) > 0);
    return 0;
}

const struct script_function optimizer_methods[] = {
    {"add_param_group", add_param_group, FUNCTION_STATEMENT, STYLE_ITEMS,
     TAKES(TRAINED, DECAY, LEARNING_RATE("1e-3"))},
    {"nbytes", nbytes, FUNCTION_QUERY, STYLE_CALL, TAKES_NOTHING},
    {"step", step, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING},
    {"zero_grad", zero_grad, FUNCTION_STATEMENT, STYLE_CALL,
     TAKES(OPTION("set_to_none", TRUTH, "true"))},
    END_OF_FUNCTIONS,
};
