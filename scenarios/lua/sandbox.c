#include "gmd_sandbox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LUA_MEMORY_LIMIT ((size_t)256 << 20)

static void *allocate(void *context, void *memory, size_t old_size, size_t new_size)
{
    struct binding *binding = context;
    size_t old = memory ? old_size : 0;
    if (new_size == 0) {
        free(memory);
        binding->lua_bytes -= old;
        return NULL;
    }
    if (new_size > old && binding->lua_bytes + (new_size - old) > LUA_MEMORY_LIMIT) {
        return NULL;
    }
    void *fresh = realloc(memory, new_size); /* Lua says how much */
    if (fresh) {
        binding->lua_bytes += new_size - old;
    }
    return fresh;
}

/* The work of the engine, in instructions. */
static uint64_t work_of(const struct engine *engine)
{
    return engine ? REQUEST_COST * engine->requests + engine->collected : 0;
}

/* An endless loop ends here, even inside pcall(). */
static void check(lua_State *lua, lua_Debug *frame)
{
    struct binding *binding = binding_of(lua);
    if (binding->instructions + work_of(binding->engine) > binding->budget) {
        lua_getinfo(lua, "Sl", frame);
        binding->fatal = true;
        luaL_error(lua,
                   "%s:%d: the script used up its %I instructions; if it is not an endless loop, "
                   "raise the parameter max_instructions",
                   frame->short_src, frame->currentline, (LUAI_UACINT)binding->budget);
    }
}

static void tell_place(lua_State *lua, lua_Debug *frame)
{
    const struct engine *engine = binding_of(lua)->engine;
    if (engine && engine->sink->place && lua_getinfo(lua, "Sl", frame)) {
        engine->sink->place(engine->sink->context, frame->short_src, frame->currentline);
    }
}

void sandbox_count(lua_State *lua, lua_Debug *frame)
{
    binding_of(lua)->instructions += SANDBOX_HOOK_EVERY;
    check(lua, frame);
    tell_place(lua, frame);
}

void sandbox_check(lua_State *lua)
{
    lua_Debug caller;
    if (lua_getstack(lua, 1, &caller)) {
        check(lua, &caller);
    }
}

/* pcall(f, ...) that passes on errors that a script must not catch. */
static int protected_call(lua_State *lua)
{
    luaL_checkany(lua, 1);
    int status = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0);
    if (status != LUA_OK && (binding_of(lua)->fatal || status == LUA_ERRMEM)) {
        return lua_error(lua);
    }
    lua_pushboolean(lua, status == LUA_OK);
    lua_insert(lua, 1);
    return lua_gettop(lua);
}

/* Addresses differ from run to run, so they are not shown. */
static int to_string(lua_State *lua)
{
    luaL_checkany(lua, 1);
    switch (lua_type(lua, 1)) {
    case LUA_TTABLE:
    case LUA_TFUNCTION:
        lua_pushstring(lua, luaL_typename(lua, 1));
        break;
    default:
        luaL_tolstring(lua, 1, NULL);
    }
    return 1;
}

static int print(lua_State *lua)
{
    int count = lua_gettop(lua);
    if (binding_of(lua)->is_silent) {
        return 0;
    }
    for (int i = 1; i <= count; i++) {
        lua_pushcfunction(lua, to_string);
        lua_pushvalue(lua, i);
        lua_call(lua, 1, 1);
        fprintf(stderr, "%s%s", i > 1 ? "\t" : "", lua_tostring(lua, -1));
        lua_pop(lua, 1);
    }
    fputc('\n', stderr);
    return 0;
}

/* Sorts keys: numbers first, then strings. */
static int key_is_less(lua_State *lua)
{
    int a = lua_type(lua, 1), b = lua_type(lua, 2);
    lua_pushboolean(lua, a == b ? lua_compare(lua, 1, 2, LUA_OPLT) : a == LUA_TNUMBER);
    return 1;
}

static int next_sorted(lua_State *lua)
{
    lua_Integer i = lua_tointeger(lua, lua_upvalueindex(3)) + 1;
    lua_pushinteger(lua, i);
    lua_replace(lua, lua_upvalueindex(3));
    if (lua_rawgeti(lua, lua_upvalueindex(2), i) == LUA_TNIL) {
        return 1;
    }
    lua_pushvalue(lua, -1);
    lua_rawget(lua, lua_upvalueindex(1));
    return 2;
}

/* pairs(t) in the order of the keys: Lua's own order depends on addresses and the clock. */
static int sorted_pairs(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_settop(lua, 1);
    lua_newtable(lua);
    lua_Integer count = 0;
    for (lua_pushnil(lua); lua_next(lua, 1);) {
        lua_pop(lua, 1);
        int type = lua_type(lua, -1);
        if (type != LUA_TNUMBER && type != LUA_TSTRING) {
            return luaL_error(lua, "pairs: a key is a %s; only numbers and strings have an order",
                              luaL_typename(lua, -1));
        }
        lua_pushvalue(lua, -1);
        lua_rawseti(lua, 2, ++count);
    }
    lua_getfield(lua, LUA_REGISTRYINDEX, "gmd.sort");
    lua_pushvalue(lua, 2);
    lua_pushcfunction(lua, key_is_less);
    lua_call(lua, 2, 0);
    lua_pushinteger(lua, 0);
    lua_pushcclosure(lua, next_sorted, 3);
    return 1;
}

static void copy_fields(lua_State *lua, const char *const *names)
{
    for (; *names; names++) {
        lua_getfield(lua, -2, *names);
        lua_setfield(lua, -2, *names);
    }
}

/* Copies the named functions of a standard library into the table at the top. */
static void copy_library(lua_State *lua, const char *name, lua_CFunction open,
                         const char *const *names)
{
    luaL_requiref(lua, name, open, 0);
    lua_newtable(lua);
    copy_fields(lua, names);
    lua_remove(lua, -2);
    lua_setfield(lua, -2, name);
}

/* Patterns and rep() are left out: one instruction of theirs can take arbitrarily long. */
static const char *const string_names[] = {"byte",    "char", "format", "len", "lower",
                                           "reverse", "sub",  "upper",  NULL};
static const char *const table_names[] = {"concat", "insert", "pack", "remove",
                                          "sort",   "unpack", NULL};
static const char *const math_names[] = {"abs",  "ceil", "cos", "exp",        "floor", "fmod",
                                         "huge", "log",  "max", "maxinteger", "min",   "mininteger",
                                         "modf", "pi",   "sin", "sqrt",       "tan",   "tointeger",
                                         "type", "ult",  NULL};
static const char *const base_names[] = {"assert",   "error", "ipairs", "select",
                                         "tonumber", "type",  NULL};

/* ("x"):rep(3) goes through the metatable of strings, which must offer no more than `string`. */
static void restrict_string_methods(lua_State *lua)
{
    lua_pushliteral(lua, "");
    if (lua_getmetatable(lua, -1)) {
        lua_getfield(lua, -3, "string");
        lua_setfield(lua, -2, "__index");
        lua_pop(lua, 1);
    }
    lua_pop(lua, 1);
}

void sandbox_functions(lua_State *lua)
{
    luaL_requiref(lua, "_G", luaopen_base, 0);
    lua_newtable(lua);
    copy_fields(lua, base_names);
    lua_remove(lua, -2);
    copy_library(lua, "string", luaopen_string, string_names);
    copy_library(lua, "table", luaopen_table, table_names);
    copy_library(lua, "math", luaopen_math, math_names);
    lua_getfield(lua, -1, "table");
    lua_getfield(lua, -1, "sort");
    lua_setfield(lua, LUA_REGISTRYINDEX, "gmd.sort");
    lua_pop(lua, 1);
    restrict_string_methods(lua);
    lua_pushcfunction(lua, protected_call);
    lua_setfield(lua, -2, "pcall");
    lua_pushcfunction(lua, to_string);
    lua_setfield(lua, -2, "tostring");
    lua_pushcfunction(lua, print);
    lua_setfield(lua, -2, "print");
    lua_pushcfunction(lua, sorted_pairs);
    lua_setfield(lua, -2, "pairs");
    static const struct {
        const char *name;
        lua_Integer bytes;
    } units[] = {{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        lua_pushinteger(lua, units[i].bytes);
        lua_setfield(lua, -2, units[i].name);
    }
}

/* --- what is wrong, and where ---------------------------------------------------------------- */

static bool has_place(const char *message, const char *file)
{
    size_t length = strlen(file);
    return strncmp(message, file, length) == 0 && message[length] == ':';
}

/* Puts "FILE:LINE: " before the message at the top, unless it has that. */
static void add_place(lua_State *lua, const char *file, int line)
{
    const char *message = lua_tostring(lua, -1);
    if (message && !has_place(message, file)) {
        lua_pushfstring(lua, "%s:%d: %s", file, line, message);
        lua_remove(lua, -2);
    }
}

int sandbox_place_error(lua_State *lua)
{
    lua_Debug frame;
    if (lua_type(lua, 1) == LUA_TNUMBER) {
        lua_tostring(lua, 1); /* converts it in place */
    }
    if (lua_type(lua, 1) != LUA_TSTRING) {
        lua_pushliteral(lua, "the script raised an error that is not a string");
    } else if (strcmp(lua_tostring(lua, 1), binding_of(lua)->message) == 0) {
        return 1; /* run.c compares this text with what was raised */
    }
    for (int level = 0; lua_getstack(lua, level, &frame); level++) {
        lua_getinfo(lua, "Sl", &frame);
        if (frame.currentline > 0) {
            add_place(lua, frame.short_src, frame.currentline);
            break;
        }
    }
    return 1;
}

typedef struct line_reader {
    const char *at, *end;
    int lines; /* handed out so far */
} line_reader;

static const char *next_line(lua_State *lua, void *context, size_t *size)
{
    (void)lua;
    line_reader *reader = context;
    const char *line = reader->at;
    size_t left = (size_t)(reader->end - line);
    const char *stop = memchr(line, '\n', left);
    *size = stop ? (size_t)(stop - line) + 1 : left;
    reader->at += *size;
    reader->lines += *size > 0;
    return line;
}

/* Reads line by line, as the parser does not say where it was when its own stack overflowed. */
int sandbox_load(lua_State *lua, const char *source, size_t length, const char *chunk)
{
    line_reader reader = {source, source + length, 0};
    int status = lua_load(lua, next_line, &reader, chunk, "t");
    if (status == LUA_ERRRUN) {
        add_place(lua, chunk + 1, reader.lines);
    }
    return status;
}

lua_State *sandbox_open(struct binding *binding)
{
    lua_State *lua = lua_newstate(allocate, binding);
    if (lua) {
        binding->lua = lua;
        *(struct binding **)lua_getextraspace(lua) = binding;
        lua_sethook(lua, sandbox_count, LUA_MASKCOUNT, SANDBOX_HOOK_EVERY);
    }
    return lua;
}
