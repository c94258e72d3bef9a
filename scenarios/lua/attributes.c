/* attributes.c - attributes, items and operators of what scripts hold. */
#include "gmd_grad_fn.h"
#include "gmd_module.h"
#include "gmd_object.h"
#include "library_parts.h"
#include "signature.h"

#include <string.h>

static int tensor_attribute(lua_State *lua, struct tensor *tensor)
{
    const char *name = lua_tostring(lua, 2);
    if (name && strcmp(name, "grad") == 0) {
        return push_result(lua, thing_keep(tensor_thing(tensor->grad)));
    }
    if (name && strcmp(name, "grad_fn") == 0) {
        return push_result(lua, (struct thing *)grad_fn_of(engine_of(lua), tensor));
    }
    return signature_unknown(lua, "a tensor", luaL_tolstring(lua, 2, NULL), &tensor_class);
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

static int list_item(lua_State *lua, struct list *list)
{
    lua_Integer i = lua_type(lua, 2) == LUA_TNUMBER ? lua_tointeger(lua, 2) : 0;
    if (lua_type(lua, 2) != LUA_TNUMBER) {
        return signature_unknown(lua, "a list", luaL_tolstring(lua, 2, NULL), &list_class);
    }
    if (i < 1 || (size_t)i > list_count(list)) {
        lua_pushnil(lua); /* so that ipairs() ends */
        return 1;
    }
    return push_result(lua, thing_keep(list_at(list, (size_t)i - 1)));
}

/* Part number `i` of a Sequential, from 1 on, or from the end where it is negative; nil beyond. */
static int sequential_part(lua_State *lua, struct module *module)
{
    lua_Integer i = lua_tointeger(lua, 2), count = (lua_Integer)module->child_count;
    i = i < 0 ? count + 1 + i : i;
    if (i < 1 || i > count) {
        lua_pushnil(lua);
        return 1;
    }
    return push_result(lua, thing_keep(&module->children[i - 1]->thing));
}

static bool is_part(lua_State *lua, const struct thing *thing)
{
    return thing->class == &module_class && lua_type(lua, 2) == LUA_TNUMBER &&
           module_is_sequential((const struct module *)thing);
}

/* The weight or bias that the key at index 2 names. */
static bool names_parameter(lua_State *lua, bool *is_bias)
{
    const char *name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "";
    *is_bias = strcmp(name, "bias") == 0;
    return *is_bias || strcmp(name, "weight") == 0;
}

static struct tensor *named_parameter(lua_State *lua, struct module *module)
{
    bool is_bias;
    return names_parameter(lua, &is_bias) ? module_own_parameter(module, is_bias) : NULL;
}

static bool set_parameter(lua_State *lua, struct thing *module, struct thing *value)
{
    bool is_bias;
    bool is_set = value && value->class == &tensor_class && names_parameter(lua, &is_bias) &&
                  module_share_parameter(engine_of(lua), (struct module *)module, is_bias,
                                         (struct tensor *)value);
    raise_failure(lua);
    return is_set;
}

int script_index(lua_State *lua)
{
    struct thing *thing = thing_at(lua, 1);
    struct tensor *parameter =
        thing->class == &module_class ? named_parameter(lua, (struct module *)thing) : NULL;
    if (parameter) {
        return push_result(lua, thing_keep(tensor_thing(parameter)));
    }
    if (is_part(lua, thing)) {
        return sequential_part(lua, (struct module *)thing);
    }
    if (thing->class == &tensor_class) {
        return tensor_attribute(lua, (struct tensor *)thing);
    }
    if (thing->class == &object_class) {
        return object_attribute(lua, (struct object *)thing);
    }
    if (thing->class == &list_class) {
        return list_item(lua, (struct list *)thing);
    }
    if (thing->class == &grad_fn_class && lua_type(lua, 2) == LUA_TSTRING &&
        strcmp(lua_tostring(lua, 2), "name") == 0) {
        lua_pushstring(lua, grad_fn_name((struct grad_fn *)thing));
        return 1;
    }
    return signature_unknown(lua, lua_pushfstring(lua, "this %s", thing->class->name),
                             luaL_tolstring(lua, 2, NULL), thing->class);
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
    if (thing && thing->class == &module_class && set_parameter(lua, thing, value)) {
        return 0;
    }
    return luaL_error(lua,
                      "only objects have attributes that can be set, lists items, and layers a "
                      "weight and a bias, which are tensors");
}

/* --- operators --------------------------------------------------------------------------- */

/* A tensor, or NULL for a number. */
static struct tensor *operand(lua_State *lua, int index)
{
    return lua_type(lua, index) == LUA_TNUMBER ? NULL : check_tensor(lua, index);
}

typedef struct tensor *(*binary)(struct engine *engine, struct tensor *a, struct tensor *b);

static int arithmetic(lua_State *lua, binary of_tensors)
{
    struct engine *engine = engine_of(lua);
    struct tensor *a = operand(lua, 1), *b = operand(lua, 2);
    return give_tensor(lua, a && b ? of_tensors(engine, a, b) : op_scale(engine, a ? a : b));
}

static int operator_add(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct tensor *a = operand(lua, 1), *b = operand(lua, 2);
    return give_tensor(lua,
                       a && b ? op_add(engine, a, b, false) : op_shift(engine, a ? a : b, false));
}

/* A number less a tensor negates it. */
static int operator_subtract(lua_State *lua)
{
    bool is_shift = lua_type(lua, 2) == LUA_TNUMBER;
    return is_shift ? operator_add(lua) : arithmetic(lua, op_sub);
}

static struct tensor *multiply(struct engine *engine, struct tensor *a, struct tensor *b)
{
    return op_mul(engine, a, b, false);
}

static int operator_multiply(lua_State *lua)
{
    return arithmetic(lua, multiply);
}

/* A number by a tensor is the number times the reciprocal. */
static int operator_divide(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    if (lua_type(lua, 1) != LUA_TNUMBER) {
        return arithmetic(lua, op_div);
    }
    struct tensor *reciprocal = op_reciprocal(engine, check_tensor(lua, 2));
    struct tensor *result = op_scale(engine, reciprocal);
    tensor_drop(engine, reciprocal);
    return give_tensor(lua, result);
}

static int operator_power(lua_State *lua)
{
    if (lua_type(lua, 2) != LUA_TNUMBER) {
        return luaL_error(lua, "a tensor can be raised to a number, not to a %s",
                          luaL_typename(lua, 2));
    }
    return give_tensor(lua, op_pow(engine_of(lua), check_tensor(lua, 1), lua_tonumber(lua, 2)));
}

static int operator_negate(lua_State *lua)
{
    return give_tensor(lua, op_scale(engine_of(lua), check_tensor(lua, 1)));
}

#define OPERATOR(name, function)                                                                   \
    {                                                                                              \
        name, function, FUNCTION_CALL, STYLE_CALL, NULL                                            \
    }

const struct script_function script_operators[] = {
    OPERATOR("__call", call_module),
    {"__len", list_length, FUNCTION_QUERY, STYLE_CALL, NULL},
    OPERATOR("__add", operator_add),
    OPERATOR("__sub", operator_subtract),
    OPERATOR("__mul", operator_multiply),
    OPERATOR("__div", operator_divide),
    OPERATOR("__pow", operator_power),
    OPERATOR("__unm", operator_negate),
    END_OF_FUNCTIONS,
};
