/* methods.c - methods, attributes and operators of tensors, modules, optimizers, objects and
 * lists. */
#include "arguments.h"
#include "gmd_grad_fn.h"
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "library.h"

#include <string.h>

static int give_tensor(lua_State *lua, gmd_tensor *tensor)
{
    if (!tensor) {
        gmd_raise_failure(lua);
    }
    return gmd_push_result(lua, gmd_thing_of(tensor));
}

/* --- tensors ----------------------------------------------------------------------------- */

/* From a tensor of any shape, whose gradient came from elsewhere. */
static int backward_with(lua_State *lua, gmd_tensor *tensor, gmd_tensor *gradient, bool retain)
{
    if (!tensor->grad_fn) {
        return luaL_error(lua, "backward() on a tensor that has no graph");
    }
    if (gmd_shape_count(&tensor->shape) != gmd_shape_count(&gradient->shape)) {
        return luaL_error(lua, "the gradient must have the shape of the tensor");
    }
    gmd_backward_from(engine_of(lua), tensor, gmd_tensor_keep(gradient), retain);
    return 0;
}

static int tensor_backward(lua_State *lua)
{
    gmd_tensor *tensor = gmd_check_tensor(lua, 1);
    bool has_gradient = !lua_isnoneornil(lua, 2) && !lua_istable(lua, 2);
    int options = has_gradient ? 3 : 2;
    gmd_known_fields(lua, options, "retain_graph");
    bool retain =
        lua_istable(lua, options) && gmd_field_boolean(lua, options, "retain_graph", false);
    if (has_gradient) {
        return backward_with(lua, tensor, gmd_check_tensor(lua, 2), retain);
    }
    gmd_tensor_backward(engine_of(lua), tensor, retain);
    return 0;
}

static int tensor_detach(lua_State *lua)
{
    return give_tensor(lua, gmd_tensor_alias(engine_of(lua), gmd_check_tensor(lua, 1)));
}

static int tensor_clone(lua_State *lua)
{
    return give_tensor(lua, gmd_op_clone(engine_of(lua), gmd_check_tensor(lua, 1)));
}

static int tensor_mean(lua_State *lua)
{
    return give_tensor(lua, gmd_op_mean(engine_of(lua), gmd_check_tensor(lua, 1)));
}

static int tensor_sum(lua_State *lua)
{
    return give_tensor(lua, gmd_op_sum(engine_of(lua), gmd_check_tensor(lua, 1)));
}

static int tensor_square(lua_State *lua)
{
    return give_tensor(lua, gmd_op_square(engine_of(lua), gmd_check_tensor(lua, 1)));
}

static int tensor_relu(lua_State *lua)
{
    return give_tensor(lua, gmd_op_relu(engine_of(lua), gmd_check_tensor(lua, 1), false));
}

static int tensor_view(lua_State *lua)
{
    gmd_tensor *tensor = gmd_check_tensor(lua, 1);
    gmd_shape shape = gmd_shape_at(lua, 2);
    return give_tensor(lua, gmd_op_reshape(engine_of(lua), tensor, &shape));
}

/* a:add_(b): in place; the result is a again, with the graph of the sum. */
static int tensor_add_in_place(lua_State *lua)
{
    gmd_engine *engine = engine_of(lua);
    gmd_tensor *a = gmd_check_tensor(lua, 1), *b = gmd_check_tensor(lua, 2);
    if (a->requires_grad && engine->grad_enabled) {
        return luaL_error(lua, "a leaf that requires a gradient cannot be changed in place");
    }
    gmd_tensor *sum = gmd_op_add(engine, a, b, true);
    gmd_tensor_rebase(engine, a, sum);
    gmd_tensor_drop(engine, sum);
    return gmd_push_result(lua, gmd_thing_keep(gmd_thing_of(a)));
}

/* Gives the number to the host: nothing is kept on the device. */
static int tensor_item(lua_State *lua)
{
    gmd_check_tensor(lua, 1);
    lua_pushnumber(lua, 0);
    return 1;
}

static int tensor_size(lua_State *lua)
{
    gmd_tensor *tensor = gmd_check_tensor(lua, 1);
    lua_Integer i = luaL_checkinteger(lua, 2);
    luaL_argcheck(lua, i >= 1 && i <= tensor->shape.dims, 2,
                  "no such dimension (they count from 1)");
    lua_pushinteger(lua, tensor->shape.size[i - 1]);
    return 1;
}

static int tensor_dim(lua_State *lua)
{
    lua_pushinteger(lua, gmd_check_tensor(lua, 1)->shape.dims);
    return 1;
}

static int tensor_nbytes(lua_State *lua)
{
    lua_pushinteger(lua, (lua_Integer)gmd_tensor_bytes(gmd_check_tensor(lua, 1)));
    return 1;
}

const gmd_function tensor_methods[] = {
    {"backward", tensor_backward, GMD_STATEMENT},
    {"detach", tensor_detach, GMD_CALL},
    {"clone", tensor_clone, GMD_CALL},
    {"mean", tensor_mean, GMD_CALL},
    {"sum", tensor_sum, GMD_CALL},
    {"square", tensor_square, GMD_CALL},
    {"relu", tensor_relu, GMD_CALL},
    {"view", tensor_view, GMD_CALL},
    {"add_", tensor_add_in_place, GMD_CALL},
    {"item", tensor_item, GMD_CALL},
    {"size", tensor_size, GMD_QUERY},
    {"dim", tensor_dim, GMD_QUERY},
    {"nbytes", tensor_nbytes, GMD_QUERY},
    {NULL, NULL, GMD_CALL},
};

/* --- modules ----------------------------------------------------------------------------- */

static int module_mode(lua_State *lua, bool training)
{
    gmd_thing *thing = gmd_check_thing(lua, 1, &gmd_module_class);
    gmd_module_train((gmd_module *)thing, training);
    return 0;
}

static int module_train(lua_State *lua)
{
    return module_mode(lua, true);
}

static int module_eval(lua_State *lua)
{
    return module_mode(lua, false);
}

static void append_parameter(gmd_engine *engine, gmd_tensor *parameter, void *context)
{
    gmd_list_append(engine, context, gmd_thing_of(parameter));
}

static int module_parameters(lua_State *lua)
{
    gmd_module *module = (gmd_module *)gmd_check_thing(lua, 1, &gmd_module_class);
    gmd_list *list = gmd_list_new(engine_of(lua));
    gmd_module_parameters(engine_of(lua), module, append_parameter, list);
    return gmd_push_result(lua, (gmd_thing *)list);
}

static int module_call(lua_State *lua)
{
    gmd_engine *engine = engine_of(lua);
    gmd_module *module = (gmd_module *)gmd_check_thing(lua, 1, &gmd_module_class);
    gmd_tensor *inputs[GMD_MAX_RESULTS], *results[GMD_MAX_RESULTS] = {NULL};
    int count = 0;
    for (int i = 2; i <= lua_gettop(lua) && !lua_isnil(lua, i); i++) {
        if (count == GMD_MAX_RESULTS) {
            return luaL_error(lua, "%s takes at most %d tensors", module->name, GMD_MAX_RESULTS);
        }
        inputs[count++] = gmd_check_tensor(lua, i);
    }
    luaL_argcheck(lua, count > 0, 2, "a tensor expected");
    if (count > module->takes) {
        return luaL_error(lua, "%s takes %d tensor%s, and here are %d", module->name, module->takes,
                          module->takes > 1 ? "s" : "", count);
    }
    int made = module->forward(engine, module, inputs, count, results);
    if (made == 0) {
        gmd_raise_failure(lua);
    }
    for (int i = 0; i < made; i++) {
        gmd_push_result(lua, gmd_thing_of(results[i]));
    }
    return made;
}

/* m:nbytes(): of parameters, of gradients that are there, of buffers. */
static int module_nbytes(lua_State *lua)
{
    gmd_thing *thing = gmd_check_thing(lua, 1, &gmd_module_class);
    gmd_module_sizes sizes = gmd_module_measure(engine_of(lua), (gmd_module *)thing);
    lua_pushinteger(lua, (lua_Integer)sizes.parameters);
    lua_pushinteger(lua, (lua_Integer)sizes.gradients);
    lua_pushinteger(lua, (lua_Integer)sizes.buffers);
    return 3;
}

/* A Sequential is filled in a loop. */
static int module_append(lua_State *lua)
{
    gmd_module *module = (gmd_module *)gmd_check_thing(lua, 1, &gmd_module_class);
    gmd_module *child = (gmd_module *)gmd_check_thing(lua, 2, &gmd_module_class);
    luaL_argcheck(lua, gmd_module_is_sequential(module), 1, "only a Sequential can be appended to");
    gmd_module_child(engine_of(lua), module, gmd_module_keep(child));
    return 0;
}

const gmd_function module_methods[] = {
    {"append", module_append, GMD_STATEMENT},    {"nbytes", module_nbytes, GMD_QUERY},
    {"train", module_train, GMD_CALL},           {"eval", module_eval, GMD_CALL},
    {"parameters", module_parameters, GMD_CALL}, {NULL, NULL, GMD_CALL},
};

/* --- optimizers -------------------------------------------------------------------------- */

static gmd_optimizer *check_optimizer(lua_State *lua)
{
    return (gmd_optimizer *)gmd_check_thing(lua, 1, &gmd_optimizer_class);
}

static int optimizer_step(lua_State *lua)
{
    gmd_optimizer_step(engine_of(lua), check_optimizer(lua));
    return 0;
}

static int optimizer_zero_grad(lua_State *lua)
{
    gmd_known_fields(lua, 2, "set_to_none");
    bool to_none = !lua_istable(lua, 2) || gmd_field_boolean(lua, 2, "set_to_none", true);
    gmd_optimizer_zero_grad(engine_of(lua), check_optimizer(lua), to_none);
    return 0;
}

static int optimizer_nbytes(lua_State *lua)
{
    lua_pushinteger(lua, (lua_Integer)gmd_optimizer_bytes(check_optimizer(lua)));
    return 1;
}

const gmd_function optimizer_methods[] = {
    {"nbytes", optimizer_nbytes, GMD_QUERY},
    {"step", optimizer_step, GMD_STATEMENT},
    {"zero_grad", optimizer_zero_grad, GMD_STATEMENT},
    {NULL, NULL, GMD_CALL},
};

/* --- lists ------------------------------------------------------------------------------- */

static gmd_list *check_list(lua_State *lua)
{
    return (gmd_list *)gmd_check_thing(lua, 1, &gmd_list_class);
}

static int list_append(lua_State *lua)
{
    gmd_thing *value = gmd_thing_at(lua, 2);
    luaL_argcheck(lua, value, 2, "a value of the engine expected");
    gmd_list_append(engine_of(lua), check_list(lua), value);
    return 0;
}

static int list_pop(lua_State *lua)
{
    gmd_list *list = check_list(lua);
    lua_Integer count = (lua_Integer)gmd_list_count(list);
    lua_Integer i = luaL_optinteger(lua, 2, count);
    luaL_argcheck(lua, i >= 1 && i <= count, 2, "no such item (they count from 1)");
    return gmd_push_result(lua, gmd_list_take(list, (size_t)i - 1));
}

static int list_clear(lua_State *lua)
{
    gmd_list_clear(engine_of(lua), check_list(lua));
    return 0;
}

static int list_length(lua_State *lua)
{
    gmd_thing *thing = gmd_thing_at(lua, 1);
    if (!thing || thing->class != &gmd_list_class) {
        return luaL_error(lua, "only a list has a length");
    }
    lua_pushinteger(lua, (lua_Integer)gmd_list_count((gmd_list *)thing));
    return 1;
}

const gmd_function list_methods[] = {
    {"append", list_append, GMD_STATEMENT},
    {"pop", list_pop, GMD_CALL},
    {"clear", list_clear, GMD_STATEMENT},
    {NULL, NULL, GMD_CALL},
};

/* --- attributes and items ---------------------------------------------------------------- */

static int tensor_attribute(lua_State *lua, gmd_tensor *tensor)
{
    const char *name = lua_tostring(lua, 2);
    if (name && strcmp(name, "grad") == 0) {
        return gmd_push_result(lua, gmd_thing_keep(gmd_thing_of(tensor->grad)));
    }
    if (name && strcmp(name, "grad_fn") == 0) {
        return gmd_push_result(lua, (gmd_thing *)gmd_grad_fn_of(engine_of(lua), tensor));
    }
    return luaL_error(lua, "a tensor has no '%s'", name ? name : luaL_typename(lua, 2));
}

/* Plain Lua values (numbers, strings, functions) are kept in a table beside the object. */
static int object_attribute(lua_State *lua, gmd_object *object)
{
    const char *name = luaL_checkstring(lua, 2);
    gmd_thing *value = gmd_object_get(object, name);
    if (value) {
        return gmd_push_result(lua, gmd_thing_keep(value));
    }
    gmd_push_handle(lua, (gmd_thing *)object);
    if (lua_getiuservalue(lua, -1, 1) == LUA_TTABLE) {
        lua_getfield(lua, -1, name);
    } else {
        lua_pushnil(lua);
    }
    return 1;
}

static int list_item(lua_State *lua, gmd_list *list)
{
    lua_Integer i = lua_type(lua, 2) == LUA_TNUMBER ? lua_tointeger(lua, 2) : 0;
    if (lua_type(lua, 2) != LUA_TNUMBER) {
        return luaL_error(lua, "a list has no '%s'", luaL_tolstring(lua, 2, NULL));
    }
    if (i < 1 || (size_t)i > gmd_list_count(list)) {
        lua_pushnil(lua); /* so that ipairs() ends */
        return 1;
    }
    return gmd_push_result(lua, gmd_thing_keep(gmd_list_at(list, (size_t)i - 1)));
}

int script_index(lua_State *lua)
{
    gmd_thing *thing = gmd_thing_at(lua, 1);
    if (thing->class == &gmd_tensor_class) {
        return tensor_attribute(lua, (gmd_tensor *)thing);
    }
    if (thing->class == &gmd_object_class) {
        return object_attribute(lua, (gmd_object *)thing);
    }
    if (thing->class == &gmd_list_class) {
        return list_item(lua, (gmd_list *)thing);
    }
    if (thing->class == &gmd_grad_fn_class && lua_type(lua, 2) == LUA_TSTRING &&
        strcmp(lua_tostring(lua, 2), "name") == 0) {
        lua_pushstring(lua, gmd_grad_fn_name((gmd_grad_fn *)thing));
        return 1;
    }
    return luaL_error(lua, "this %s has no '%s'", thing->class->name, luaL_tolstring(lua, 2, NULL));
}

/* The value at index 3, or nothing: the name is now taken by a value of the engine. */
static void set_plain(lua_State *lua, gmd_object *object, const char *name, bool is_plain)
{
    gmd_push_handle(lua, (gmd_thing *)object);
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
    gmd_engine *engine = engine_of(lua);
    gmd_thing *thing = gmd_thing_at(lua, 1), *value = gmd_thing_at(lua, 3);
    if (thing && thing->class == &gmd_object_class) {
        const char *name = luaL_checkstring(lua, 2);
        set_plain(lua, (gmd_object *)thing, name, !value);
        gmd_object_set(engine, (gmd_object *)thing, name, value);
        return 0;
    }
    if (thing && thing->class == &gmd_list_class && value) {
        gmd_list *list = (gmd_list *)thing;
        lua_Integer i = luaL_checkinteger(lua, 2);
        luaL_argcheck(lua, i >= 1 && (size_t)i <= gmd_list_count(list), 2,
                      "no such item (they count from 1); append() adds one");
        gmd_list_set(engine, list, (size_t)i - 1, value);
        return 0;
    }
    return luaL_error(lua, "only objects have attributes that can be set, and lists items");
}

/* --- operators --------------------------------------------------------------------------- */

static int arithmetic(lua_State *lua,
                      gmd_tensor *(*operation)(gmd_engine *engine, gmd_tensor *a, gmd_tensor *b))
{
    gmd_tensor *a = lua_isnumber(lua, 1) ? NULL : gmd_check_tensor(lua, 1);
    gmd_tensor *b = lua_isnumber(lua, 2) ? NULL : gmd_check_tensor(lua, 2);
    gmd_tensor *result =
        a && b ? operation(engine_of(lua), a, b) : gmd_op_scale(engine_of(lua), a ? a : b);
    return give_tensor(lua, result);
}

static gmd_tensor *add(gmd_engine *engine, gmd_tensor *a, gmd_tensor *b)
{
    return gmd_op_add(engine, a, b, false);
}

static int operator_add(lua_State *lua)
{
    return arithmetic(lua, add);
}

static gmd_tensor *multiply(gmd_engine *engine, gmd_tensor *a, gmd_tensor *b)
{
    return gmd_op_mul(engine, a, b, false);
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
    return give_tensor(lua, gmd_op_scale(engine_of(lua), gmd_check_tensor(lua, 1)));
}

const gmd_function script_operators[] = {
    {"__call", module_call, GMD_CALL},      {"__len", list_length, GMD_QUERY},
    {"__add", operator_add, GMD_CALL},      {"__sub", operator_add, GMD_CALL},
    {"__mul", operator_multiply, GMD_CALL}, {"__div", operator_divide, GMD_CALL},
    {"__unm", operator_negate, GMD_CALL},   {NULL, NULL, GMD_CALL},
};
