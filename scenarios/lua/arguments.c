#include "arguments.h"

#include "gmd_spelling.h"

#include <stdio.h>
#include <string.h>

/* The name by which the script called the function that is running. */
static const char *caller_name(lua_State *lua)
{
    lua_Debug frame;
    bool has_name = lua_getstack(lua, 0, &frame) && lua_getinfo(lua, "n", &frame) && frame.name;
    return has_name ? lua_pushstring(lua, frame.name) : "this function";
}

static lua_Integer item(lua_State *lua, int index, lua_Integer i)
{
    lua_rawgeti(lua, index, i);
    lua_Integer value = lua_tointeger(lua, -1);
    lua_pop(lua, 1);
    return value;
}

static int count_dims(lua_State *lua, int index)
{
    lua_Unsigned dims = lua_rawlen(lua, index);
    if (dims > SHAPE_MAX_DIMS) {
        luaL_error(lua, "%s: a shape has at most %d dimensions", caller_name(lua), SHAPE_MAX_DIMS);
    }
    return (int)dims;
}

struct shape shape_at(lua_State *lua, int index)
{
    struct shape shape = {count_dims(lua, index), {0}};
    for (int i = 0; i < shape.dims; i++) {
        shape.size[i] = item(lua, index, i + 1);
    }
    return shape;
}

struct shape inferred_shape_at(lua_State *lua, int index, uint64_t count)
{
    struct shape shape = shape_at(lua, index);
    int open = -1;
    for (int i = 0; i < shape.dims; i++) {
        if (shape.size[i] < 0 && open >= 0) {
            luaL_error(lua, "%s: only one size can be -1, which is what is left", caller_name(lua));
        }
        open = shape.size[i] < 0 ? i : open;
    }
    if (open >= 0) {
        shape.size[open] = 1;
        uint64_t others = shape_count(&shape);
        if (others == 0 || count % others != 0) {
            luaL_error(lua, "%s: a size of -1: %I elements are no multiple of %I", caller_name(lua),
                       (LUAI_UACINT)count, (LUAI_UACINT)others);
        } else {
            shape.size[open] = (int64_t)(count / others);
        }
    }
    return shape;
}

static int dimension_of(lua_State *lua, lua_Integer dimension, int dims)
{
    lua_Integer from_one = dimension < 0 ? dimension + dims + 1 : dimension;
    if (from_one < 1 || from_one > dims) {
        luaL_error(lua, "%s: no such dimension: %I of %d (they count from 1; -1 is the last)",
                   caller_name(lua), (LUAI_UACINT)dimension, dims);
        return 0;
    }
    return (int)from_one - 1;
}

int dimension_at(lua_State *lua, int index, int dims)
{
    return dimension_of(lua, lua_tointeger(lua, index), dims);
}

uint32_t dimensions_at(lua_State *lua, int index, int dims)
{
    uint32_t bits = 0;
    if (lua_isinteger(lua, index) || lua_isnumber(lua, index)) {
        return 1u << dimension_at(lua, index, dims);
    }
    lua_Integer count = lua_istable(lua, index) ? (lua_Integer)lua_rawlen(lua, index) : 0;
    for (lua_Integer i = 1; i <= count; i++) {
        uint32_t bit = 1u << dimension_of(lua, item(lua, index, i), dims);
        if (bits & bit) {
            luaL_error(lua, "%s: dimension %I is given twice", caller_name(lua),
                       (LUAI_UACINT)item(lua, index, i));
        }
        bits |= bit;
    }
    return bits;
}

void pair_at(lua_State *lua, int index, int64_t pair[2])
{
    if (lua_isnumber(lua, index)) {
        pair[0] = pair[1] = lua_tointeger(lua, index);
    } else if (lua_istable(lua, index)) {
        lua_Unsigned count = lua_rawlen(lua, index);
        if (count != 1 && count != 2) {
            luaL_error(lua, "%s: one number or two expected, got %d", caller_name(lua), (int)count);
        }
        pair[0] = item(lua, index, 1);
        pair[1] = item(lua, index, (lua_Integer)count);
    }
}

struct upsample upsample_at(lua_State *lua, int index, const char *what)
{
    struct upsample to = {.scale = lua_tonumber(lua, index + 1)};
    const char *mode = lua_tostring(lua, index + 2);
    pair_at(lua, index, to.size);
    if ((to.size[0] > 0) == (to.scale > 0)) {
        luaL_error(lua, "%s: either size or scale_factor expected", what);
    }
    to.bilinear = strcmp(mode, "bilinear") == 0;
    if (!to.bilinear && strcmp(mode, "nearest") != 0) {
        luaL_error(lua, "%s: mode: nearest or bilinear expected, got \"%s\"", what, mode);
    }
    return to;
}

enum dtype dtype_at(lua_State *lua, int index, enum dtype absent)
{
    enum dtype dtype = absent;
    if (!lua_isnil(lua, index)) {
        dtype_parse(lua_tostring(lua, index), &dtype);
    }
    return dtype;
}

/* --- scenario { } ------------------------------------------------------------------------ */

/* Copies the next word; NULL: there is none. */
static const char *next_word(const char *at, char word[GMD_SPELLING_MAX + 1])
{
    size_t length = strcspn(at, " ");
    if (length == 0) {
        return NULL;
    }
    snprintf(word, GMD_SPELLING_MAX + 1, "%.*s", (int)length, at);
    return at + length + strspn(at + length, " ");
}

static void check_field(lua_State *lua, const char *name, const char *names)
{
    char word[GMD_SPELLING_MAX + 1];
    gmd_near near;
    gmd_near_begin(&near, name);
    for (const char *at = names; (at = next_word(at, word));) {
        if (strcmp(word, name) == 0) {
            return;
        }
        gmd_near_offer(&near, word);
    }
    luaL_error(lua, "'%s' is not known here%s; there are: %s", name, gmd_near_text(&near), names);
}

void check_fields(lua_State *lua, int index, const char *names)
{
    if (!lua_istable(lua, index)) {
        return;
    }
    for (lua_pushnil(lua); lua_next(lua, index);) {
        lua_pop(lua, 1);
        if (lua_type(lua, -1) == LUA_TSTRING) {
            check_field(lua, lua_tostring(lua, -1), names);
        }
    }
}
