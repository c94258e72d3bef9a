#include "arguments.h"

#include <string.h>

static lua_Integer integer_in(lua_State *lua, const char *name, lua_Integer least, lua_Integer most)
{
    int is_integer;
    lua_Integer value = lua_tointegerx(lua, -1, &is_integer);
    if (!is_integer || lua_type(lua, -1) != LUA_TNUMBER) {
        return luaL_error(lua, "%s: a whole number expected, got %s", name, luaL_typename(lua, -1));
    }
    if (value < least || value > most) {
        return luaL_error(lua, "%s: %I is not between %I and %I", name, (LUAI_UACINT)value,
                          (LUAI_UACINT)least, (LUAI_UACINT)most);
    }
    lua_pop(lua, 1);
    return value;
}

lua_Integer field_integer(lua_State *lua, int index, const char *name, int position,
                          lua_Integer least, lua_Integer most)
{
    luaL_checktype(lua, index, LUA_TTABLE);
    if (lua_getfield(lua, index, name) == LUA_TNIL && position > 0) {
        lua_pop(lua, 1);
        lua_rawgeti(lua, index, position);
    }
    return integer_in(lua, name, least, most);
}

lua_Integer field_integer_or(lua_State *lua, int index, const char *name, lua_Integer absent,
                             lua_Integer least, lua_Integer most)
{
    luaL_checktype(lua, index, LUA_TTABLE);
    if (lua_getfield(lua, index, name) == LUA_TNIL) {
        lua_pop(lua, 1);
        return absent;
    }
    return integer_in(lua, name, least, most);
}

bool field_boolean(lua_State *lua, int index, const char *name, bool absent)
{
    luaL_checktype(lua, index, LUA_TTABLE);
    if (lua_getfield(lua, index, name) == LUA_TNIL) {
        lua_pop(lua, 1);
        return absent;
    }
    if (!lua_isboolean(lua, -1)) {
        luaL_error(lua, "%s: true or false expected, got %s", name, luaL_typename(lua, -1));
    }
    bool value = lua_toboolean(lua, -1);
    lua_pop(lua, 1);
    return value;
}

double field_number(lua_State *lua, int index, const char *name, double absent)
{
    luaL_checktype(lua, index, LUA_TTABLE);
    if (lua_getfield(lua, index, name) == LUA_TNIL) {
        lua_pop(lua, 1);
        return absent;
    }
    if (lua_type(lua, -1) != LUA_TNUMBER) {
        luaL_error(lua, "%s: a number expected, got %s", name, luaL_typename(lua, -1));
    }
    double value = lua_tonumber(lua, -1);
    lua_pop(lua, 1);
    return value;
}

enum dtype field_dtype(lua_State *lua, int index, enum dtype absent)
{
    enum dtype dtype = absent;
    if (lua_getfield(lua, index, "dtype") != LUA_TNIL) {
        const char *name = lua_tostring(lua, -1);
        if (!name || !dtype_parse(name, &dtype)) {
            luaL_error(lua, "dtype: float32, float64, float16, bfloat16, int64, int32, uint8 or "
                            "bool expected");
        }
    }
    lua_pop(lua, 1);
    return dtype;
}

struct shape shape_at(lua_State *lua, int index)
{
    struct shape shape = {0, {0}};
    luaL_checktype(lua, index, LUA_TTABLE);
    lua_Unsigned dims = lua_rawlen(lua, index);
    if (dims > SHAPE_MAX_DIMS) {
        luaL_error(lua, "a shape has at most %d dimensions", SHAPE_MAX_DIMS);
    }
    for (lua_Unsigned i = 0; i < dims; i++) {
        lua_rawgeti(lua, index, (lua_Integer)i + 1);
        shape.size[i] = integer_in(lua, "size of a dimension", 0, MAX_DIMENSION_SIZE);
    }
    shape.dims = (int)dims;
    return shape;
}

/* Whether `name` is one of the words of `names`. */
static bool is_word(const char *name, const char *names)
{
    size_t length = strlen(name);
    for (const char *at = names; length > 0 && (at = strstr(at, name)); at += length) {
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

void check_fields(lua_State *lua, int index, const char *names)
{
    if (!lua_istable(lua, index)) {
        return;
    }
    for (lua_pushnil(lua); lua_next(lua, index);) {
        lua_pop(lua, 1);
        if (lua_type(lua, -1) == LUA_TSTRING && !is_word(lua_tostring(lua, -1), names)) {
            luaL_error(lua, "'%s' is not known here; there are: %s", lua_tostring(lua, -1), names);
        }
    }
}
