/* methods.c - methods, attributes and operators of tensors, modules, optimizers, objects and
 * lists. */
#include "arguments.h"
#include "gmd_grad_fn.h"
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "library_parts.h"

#include <string.h>

static int give_tensor(lua_State *lua, struct tensor *tensor)
{
    if (!tensor) {
        raise_failure(lua);
    }
    return push_result(lua, tensor_thing(tensor));
}

/* --- tensors ----------------------------------------------------------------------------- */

/* backward() from a tensor of any shape, with a gradient that the script gives. */
static int backward_with(lua_State *lua, struct tensor *tensor, struct tensor *gradient,
                         bool retain)
{
    if (!tensor->grad_fn) {
        return luaL_error(lua, "backward() on a tensor that has no graph");
    }
    if (shape_count(&tensor->shape) != shape_count(&gradient->shape)) {
        return luaL_error(lua, "the gradient must have the shape of the tensor");
    }
    tensor_backward_from(engine_of(lua), tensor, tensor_keep(gradient), retain);
    return 0;
}

static int call_tensor_backward(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    bool has_gradient = !lua_isnoneornil(lua, 2) && !lua_istable(lua, 2);
    int options = has_gradient ? 3 : 2;
    check_fields(lua, options, "retain_graph");
    bool retain = lua_istable(lua, options) && field_boolean(lua, options, "retain_graph", false);
    if (has_gradient) {
        return backward_with(lua, tensor, check_tensor(lua, 2), retain);
    }
    tensor_backward(engine_of(lua), tensor, retain);
    return 0;
}

static int call_tensor_detach(lua_State *lua)
{
    return give_tensor(lua, tensor_alias(engine_of(lua), check_tensor(lua, 1)));
}

static int call_tensor_clone(lua_State *lua)
{
    return give_tensor(lua, op_clone(engine_of(lua), check_tensor(lua, 1)));
}

static int call_tensor_mean(lua_State *lua)
{
    return give_tensor(lua, op_mean(engine_of(lua), check_tensor(lua, 1)));
}

static int call_tensor_sum(lua_State *lua)
{
    return give_tensor(lua, op_sum(engine_of(lua), check_tensor(lua, 1)));
}

static int call_tensor_square(lua_State *lua)
{
    return give_tensor(lua, op_square(engine_of(lua), check_tensor(lua, 1)));
}

static int call_tensor_relu(lua_State *lua)
{
    return give_tensor(lua, op_relu(engine_of(lua), check_tensor(lua, 1), false));
}

static int call_tensor_view(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    struct shape shape = shape_at(lua, 2);
    return give_tensor(lua, op_reshape(engine_of(lua), tensor, &shape));
}

/* a:add_(b): in place; the result is a again, with the graph of the sum. */
static int call_tensor_add_in_place(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct tensor *a = check_tensor(lua, 1), *b = check_tensor(lua, 2);
    if (a->requires_grad && engine->grad_enabled) {
        return luaL_error(lua, "a leaf that requires a gradient cannot be changed in place");
    }
    struct tensor *sum = op_add(engine, a, b, true);
    tensor_rebase(engine, a, sum);
    tensor_drop(engine, sum);
    return push_result(lua, thing_keep(tensor_thing(a)));
}

/* The number goes to the host; nothing is allocated on the device. */
static int call_tensor_item(lua_State *lua)
{
    check_tensor(lua, 1);
    lua_pushnumber(lua, 0);
    return 1;
}

static int call_tensor_size(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    lua_Integer i = luaL_checkinteger(lua, 2);
    luaL_argcheck(lua, i >= 1 && i <= tensor->shape.dims, 2,
                  "no such dimension (they count from 1)");
    lua_pushinteger(lua, tensor->shape.size[i - 1]);
    return 1;
}

static int call_tensor_dim(lua_State *lua)
{
    lua_pushinteger(lua, check_tensor(lua, 1)->shape.dims);
    return 1;
}

static int call_tensor_nbytes(lua_State *lua)
{
    lua_pushinteger(lua, (lua_Integer)tensor_bytes(check_tensor(lua, 1)));
    return 1;
}

const struct script_function tensor_methods[] = {
    {"backward", call_tensor_backward, FUNCTION_STATEMENT},
    {"detach", call_tensor_detach, FUNCTION_CALL},
    {"clone", call_tensor_clone, FUNCTION_CALL},
    {"mean", call_tensor_mean, FUNCTION_CALL},
    {"sum", call_tensor_sum, FUNCTION_CALL},
    {"square", call_tensor_square, FUNCTION_CALL},
    {"relu", call_tensor_relu, FUNCTION_CALL},
    {"view", call_tensor_view, FUNCTION_CALL},
    {"add_", call_tensor_add_in_place, FUNCTION_CALL},
    {"item", call_tensor_item, FUNCTION_CALL},
    {"size", call_tensor_size, FUNCTION_QUERY},
    {"dim", call_tensor_dim, FUNCTION_QUERY},
    {"nbytes", call_tensor_nbytes, FUNCTION_QUERY},
    {NULL, NULL, FUNCTION_CALL},
};

/* --- modules ----------------------------------------------------------------------------- */

static int call_module_mode(lua_State *lua, bool training)
{
    struct thing *thing = check_thing(lua, 1, &module_class);
    module_train((struct module *)thing, training);
    return 0;
}

static int call_module_train(lua_State *lua)
{
    return call_module_mode(lua, true);
}

static int call_module_eval(lua_State *lua)
{
    return call_module_mode(lua, false);
}

static void append_parameter(struct engine *engine, struct tensor *parameter, void *context)
{
    list_append(engine, context, tensor_thing(parameter));
}

static int call_module_parameters(lua_State *lua)
{
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    struct list *list = list_new(engine_of(lua));
    module_parameters(engine_of(lua), module, append_parameter, list);
    return push_result(lua, (struct thing *)list);
}

static int call_module_call(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    struct tensor *inputs[MODULE_MAX_RESULTS], *results[MODULE_MAX_RESULTS] = {NULL};
    int count = 0;
    for (int i = 2; i <= lua_gettop(lua) && !lua_isnil(lua, i); i++) {
        if (count == MODULE_MAX_RESULTS) {
            return luaL_error(lua, "%s takes at most %d tensors", module->name, MODULE_MAX_RESULTS);
        }
        inputs[count++] = check_tensor(lua, i);
    }
    luaL_argcheck(lua, count > 0, 2, "a tensor expected");
    if (count > module->takes) {
        return luaL_error(lua, "%s takes %d tensor%s, and here are %d", module->name, module->takes,
                          module->takes > 1 ? "s" : "", count);
    }
    int made = module->forward(engine, module, inputs, count, results);
    if (made == 0) {
        raise_failure(lua);
    }
    for (int i = 0; i < made; i++) {
        push_result(lua, tensor_thing(results[i]));
    }
    return made;
}

/* m:nbytes(): bytes of parameters, of the gradients that exist, and of buffers. */
static int call_module_nbytes(lua_State *lua)
{
    struct thing *thing = check_thing(lua, 1, &module_class);
    struct module_sizes sizes = module_measure(engine_of(lua), (struct module *)thing);
    lua_pushinteger(lua, (lua_Integer)sizes.parameters);
    lua_pushinteger(lua, (lua_Integer)sizes.gradients);
    lua_pushinteger(lua, (lua_Integer)sizes.buffers);
    return 3;
}

/* A Sequential is filled in a loop. */
static int call_module_append(lua_State *lua)
{
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    struct module *child = (struct module *)check_thing(lua, 2, &module_class);
    luaL_argcheck(lua, module_is_sequential(module), 1, "only a Sequential can be appended to");
    module_child(engine_of(lua), module, module_keep(child));
    return 0;
}

const struct script_function module_methods[] = {
    {"append", call_module_append, FUNCTION_STATEMENT},
    {"nbytes", call_module_nbytes, FUNCTION_QUERY},
    {"train", call_module_train, FUNCTION_CALL},
    {"eval", call_module_eval, FUNCTION_CALL},
    {"parameters", call_module_parameters, FUNCTION_CALL},
    {NULL, NULL, FUNCTION_CALL},
};

/* --- optimizers -------------------------------------------------------------------------- */

static struct optimizer *check_optimizer(lua_State *lua)
{
    return (struct optimizer *)check_thing(lua, 1, &optimizer_class);
}

static int call_optimizer_step(lua_State *lua)
{
    optimizer_step(engine_of(lua), check_optimizer(lua));
    return 0;
}

static int call_optimizer_zero_grad(lua_State *lua)
{
    check_fields(lua, 2, "set_to_none");
    bool to_none = !lua_istable(lua, 2) || field_boolean(lua, 2, "set_to_none", true);
    optimizer_zero_grad(engine_of(lua), check_optimizer(lua), to_none);
    return 0;
}

static int call_optimizer_nbytes(lua_State *lua)
{
    lua_pushinteger(lua, (lua_Integer)optimizer_bytes(check_optimizer(lua)));
    return 1;
}

const struct script_function optimizer_methods[] = {
    {"nbytes", call_optimizer_nbytes, FUNCTION_QUERY},
    {"step", call_optimizer_step, FUNCTION_STATEMENT},
    {"zero_grad", call_optimizer_zero_grad, FUNCTION_STATEMENT},
    {NULL, NULL, FUNCTION_CALL},
};

/* --- lists ------------------------------------------------------------------------------- */

static struct list *check_list(lua_State *lua)
{
    return (struct list *)check_thing(lua, 1, &list_class);
}

static int call_list_append(lua_State *lua)
{
    struct thing *value = thing_at(lua, 2);
    luaL_argcheck(lua, value, 2, "a value of the engine expected");
    list_append(engine_of(lua), check_list(lua), value);
    return 0;
}

static int call_list_pop(lua_State *lua)
{
    struct list *list = check_list(lua);
    lua_Integer count = (lua_Integer)list_count(list);
    lua_Integer i = luaL_optinteger(lua, 2, count);
    luaL_argcheck(lua, i >= 1 && i <= count, 2, "no such item (they count from 1)");
    return push_result(lua, list_take(list, (size_t)i - 1));
}

static int call_list_clear(lua_State *lua)
{
    list_clear(engine_of(lua), check_list(lua));
    return 0;
}

static int call_list_length(lua_State *lua)
{
    struct thing *thing = thing_at(lua, 1);
    if (!thing || thing->class != &list_class) {
        return luaL_error(lua, "only a list has a length");
    }
    lua_pushinteger(lua, (lua_Integer)list_count((struct list *)thing));
    return 1;
}

const struct script_function list_methods[] = {
    {"append", call_list_append, FUNCTION_STATEMENT},
    {"pop", call_list_pop, FUNCTION_CALL},
    {"clear", call_list_clear, FUNCTION_STATEMENT},
    {NULL, NULL, FUNCTION_CALL},
};

/* --- attributes and items ---------------------------------------------------------------- */

static int call_tensor_attribute(lua_State *lua, struct tensor *tensor)
{
    const char *name = lua_tostring(lua, 2);
    if (name && strcmp(name, "grad") == 0) {
        return push_result(lua, thing_keep(tensor_thing(tensor->grad)));
    }
    if (name && strcmp(name, "grad_fn") == 0) {
        return push_result(lua, (struct thing *)grad_fn_of(engine_of(lua), tensor));
    }
    return luaL_error(lua, "a tensor has no '%s'", name ? name : luaL_typename(lua, 2));
}

/* Plain Lua values (numbers, strings, functions) are kept in a table beside the object. */
static int object_attribute(lua_State *lua, struct object *object)
{
    const char *name = luaL_checkstring(lua, 2);
    struct thing *value = object_get(object, name);
    if (value) {
        return push_result(lua, thing_keep(value));
    }
    push_handle(lua, (struct thing *)object);
    if (lua_getiuservalue(lua, -1, 1) == LUA_TTABLE) {
        lua_getfield(lua, -1, name);
    } else {
        lua_pushnil(lua);
    }
    return 1;
}

static int call_list_item(lua_State *lua, struct list *list)
{
    lua_Integer i = lua_type(lua, 2) == LUA_TNUMBER ? lua_tointeger(lua, 2) : 0;
    if (lua_type(lua, 2) != LUA_TNUMBER) {
        return luaL_error(lua, "a list has no '%s'", luaL_tolstring(lua, 2, NULL));
    }
    if (i < 1 || (size_t)i > list_count(list)) {
        lua_pushnil(lua); /* so that ipairs() ends */
        return 1;
    }
    return push_result(lua, thing_keep(list_at(list, (size_t)i - 1)));
}

int script_index(lua_State *lua)
{
    struct thing *thing = thing_at(lua, 1);
    if (thing->class == &tensor_class) {
        return call_tensor_attribute(lua, (struct tensor *)thing);
    }
    if (thing->class == &object_class) {
        return object_attribute(lua, (struct object *)thing);
    }
    if (thing->class == &list_class) {
        return call_list_item(lua, (struct list *)thing);
    }
    if (thing->class == &grad_fn_class && lua_type(lua, 2) == LUA_TSTRING &&
        strcmp(lua_tostring(lua, 2), "name") == 0) {
        lua_pushstring(lua, grad_fn_name((struct grad_fn *)thing));
        return 1;
    }
    return luaL_error(lua, "this %s has no '%s'", thing->class->name, luaL_tolstring(lua, 2, NULL));
}

/* Sets the plain value at index 3, or deletes it where the name now holds a value of the engine. */
static void set_plain(lua_State *lua, struct object *object, const char *name, bool is_plain)
{
    push_handle(lua, (struct thing *)object);
    if (lua_getiuservalue(lua, -1, 1) != LUA_TTABLE) {
        lua_pop(lua, 1);
        lua_newtable(lua);
        lua_pushvalue(lua, -1);
        lua_setiuservalue(lua, -3, 1);
    }
    if (is_plain) {
        lua_pushvalue(lua, 3);
    } else {
        lua_pushnil(lua);
    }
    lua_setfield(lua, -2, name);
    lua_pop(lua, 2);
}

int script_set_index(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct thing *thing = thing_at(lua, 1), *value = thing_at(lua, 3);
    if (thing && thing->class == &object_class) {
        const char *name = luaL_checkstring(lua, 2);
        set_plain(lua, (struct object *)thing, name, !value);
        object_set(engine, (struct object *)thing, name, value);
        return 0;
    }
    if (thing && thing->class == &list_class && value) {
        struct list *list = (struct list *)thing;
        lua_Integer i = luaL_checkinteger(lua, 2);
        luaL_argcheck(lua, i >= 1 && (size_t)i <= list_count(list), 2,
                      "no such item (they count from 1); append() adds one");
        list_set(engine, list, (size_t)i - 1, value);
        return 0;
    }
    return luaL_error(lua, "only objects have attributes that can be set, and lists items");
}

/* --- operators --------------------------------------------------------------------------- */

static int arithmetic(lua_State *lua,
                      struct tensor *(*operation)(struct engine *engine, struct tensor *a,
                                                  struct tensor *b))
{
    struct tensor *a = lua_isnumber(lua, 1) ? NULL : check_tensor(lua, 1);
    struct tensor *b = lua_isnumber(lua, 2) ? NULL : check_tensor(lua, 2);
    struct tensor *result =
        a && b ? operation(engine_of(lua), a, b) : op_scale(engine_of(lua), a ? a : b);
    return give_tensor(lua, result);
}

static struct tensor *add(struct engine *engine, struct tensor *a, struct tensor *b)
{
    return op_add(engine, a, b, false);
}

static int operator_add(lua_State *lua)
{
    return arithmetic(lua, add);
}

static struct tensor *multiply(struct engine *engine, struct tensor *a, struct tensor *b)
{
    return op_mul(engine, a, b, false);
}

static int operator_multiply(lua_State *lua)
{
    return arithmetic(lua, multiply);
}

static int operator_divide(lua_State *lua)
{
    luaL_argcheck(lua, lua_isnumber(lua, 2), 2, "a tensor is divided by a number");
    return arithmetic(lua, multiply);
}

static int operator_negate(lua_State *lua)
{
    return give_tensor(lua, op_scale(engine_of(lua), check_tensor(lua, 1)));
}

const struct script_function script_operators[] = {
    {"__call", call_module_call, FUNCTION_CALL}, {"__len", call_list_length, FUNCTION_QUERY},
    {"__add", operator_add, FUNCTION_CALL},      {"__sub", operator_add, FUNCTION_CALL},
    {"__mul", operator_multiply, FUNCTION_CALL}, {"__div", operator_divide, FUNCTION_CALL},
    {"__unm", operator_negate, FUNCTION_CALL},   {NULL, NULL, FUNCTION_CALL},
};
