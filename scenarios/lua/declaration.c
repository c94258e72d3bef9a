/* declaration.c - what scenario { } at the head of a script says, and values for its parameters. */
#include "arguments.h"
#include "gmd_grow.h"
#include "gmd_sandbox.h"
#include "gmd_script.h"
#include "gmd_size.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PARAMS         64
#define DECLARATION_BUDGET 1000000
#define DEFAULT_BUDGET     "1000000000"
#define MOST_BY_DEFAULT    ((lua_Integer)1 << 40)

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

struct declared_param *script_declare_param(gmd_scenario *scenario, const char *key,
                                            const char *text, const char *help,
                                            enum param_type type)
{
    if (!GMD_GROW(&scenario->params, &scenario->param_capacity, scenario->param_count + 1)) {
        return NULL;
    }
    struct declared_param *added = &scenario->params[scenario->param_count++];
    *added = (struct declared_param){copy(key), copy(text), copy(help), type, 0, MOST_BY_DEFAULT};
    return added->key && added->text && added->help ? added : NULL;
}

const struct declared_param *script_find_param(const gmd_scenario *scenario, const char *key)
{
    for (size_t i = 0; i < scenario->param_count; i++) {
        if (strcmp(scenario->params[i].key, key) == 0) {
            return &scenario->params[i];
        }
    }
    return NULL;
}

/* --- reading it -------------------------------------------------------------------------- */

static enum param_type type_of_default(lua_State *lua, int index, const char *key)
{
    switch (lua_type(lua, index)) {
    case LUA_TBOOLEAN:
        return PARAM_BOOLEAN;
    case LUA_TNUMBER:
        return lua_isinteger(lua, index) ? PARAM_INTEGER : PARAM_NUMBER;
    case LUA_TSTRING:
        return PARAM_TEXT;
    default:
        luaL_error(lua, "parameter '%s': the default is true, false, a number or a string", key);
        return PARAM_TEXT;
    }
}

/* A limit that the script does not state is the engine's for whole numbers; other numbers have
 * none. */
static double limit(lua_State *lua, const char *name, const struct declared_param *param,
                    double absent)
{
    if (lua_getfield(lua, -1, name) == LUA_TNIL) {
        lua_pop(lua, 1);
        return absent;
    }
    double value = lua_tonumber(lua, -1);
    bool is_finite = lua_type(lua, -1) == LUA_TNUMBER && value - value == 0;
    bool is_good = param->type == PARAM_INTEGER ? is_finite && value == floor(value)
                                                : is_finite && param->type == PARAM_NUMBER;
    if (!is_good) {
        luaL_error(lua, "parameter '%s': %s does not fit its type", param->key, name);
    }
    lua_pop(lua, 1);
    return value;
}

/* A parameter becomes a variable of the script. It may hide a function of the engine with its name.
 */
static void check_name(lua_State *lua, const gmd_scenario *scenario, const char *key)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    if (!key || script_find_param(scenario, key)) {
        luaL_error(lua, "a parameter needs a name of its own: { name, default, help }");
    }
    if (!*key || !strchr(letters, *key) || key[strspn(key, others)]) {
        luaL_error(lua, "parameter '%s': it is not a valid variable name", key);
    }
    if (strcmp(key, "max_instructions") == 0) {
        luaL_error(lua, "every scenario has the parameter max_instructions already");
    }
}

static void check_default(lua_State *lua, const gmd_scenario *scenario,
                          const struct declared_param *param)
{
    gmd_error error = {.text = ""};
    if (!script_push_param(lua, scenario, param, param->text, &error)) {
        luaL_error(lua, "%s", error.text);
    }
    lua_pop(lua, 1);
}

/* { "batch", 1, "samples in a batch", least = 1, most = 1024 } */
static void read_param(lua_State *lua, gmd_scenario *scenario)
{
    luaL_argexpected(lua, lua_istable(lua, -1), 1, "{ name, default, help } for each parameter");
    int entry = lua_gettop(lua);
    check_fields(lua, entry, "least most");
    lua_rawgeti(lua, entry, 1);
    lua_rawgeti(lua, entry, 3);
    lua_rawgeti(lua, entry, 2);
    const char *key = lua_tostring(lua, entry + 1), *help = lua_tostring(lua, entry + 2);
    check_name(lua, scenario, key);
    enum param_type type = type_of_default(lua, entry + 3, key);
    const char *text = luaL_tolstring(lua, entry + 3, NULL);
    struct declared_param *added = script_declare_param(scenario, key, text, help, type);
    if (!added) {
        luaL_error(lua, "no memory");
        return;
    }
    lua_settop(lua, entry);
    bool is_whole = type == PARAM_INTEGER;
    added->least = limit(lua, "least", added, is_whole ? 0 : -HUGE_VAL);
    added->most = limit(lua, "most", added, is_whole ? MOST_BY_DEFAULT : HUGE_VAL);
    check_default(lua, scenario, added);
}

static const char *text_field(lua_State *lua, const char *name)
{
    lua_getfield(lua, 1, name);
    if (lua_type(lua, -1) != LUA_TSTRING) {
        luaL_error(lua, "scenario { } needs %s = \"...\"", name);
    }
    return lua_tostring(lua, -1);
}

static bool is_tag(const char *text)
{
    return text && *text && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(text);
}

/* tags = { "retention", ... } */
static void read_tags(lua_State *lua, gmd_scenario *scenario)
{
    if (lua_getfield(lua, 1, "tags") == LUA_TNIL) {
        lua_pop(lua, 1);
        return;
    }
    luaL_argexpected(lua, lua_istable(lua, -1), 1, "tags = { \"...\", ... }");
    lua_Unsigned count = lua_rawlen(lua, -1);
    luaL_argcheck(lua, count <= SCRIPT_TAGS_MAX, 1, "too many tags");
    for (lua_Unsigned i = 1; i <= count; i++) {
        lua_rawgeti(lua, -1, (lua_Integer)i);
        const char *tag = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : NULL;
        if (!is_tag(tag)) {
            luaL_error(lua, "a tag is a word of small letters, digits and '_'");
        }
        scenario->tags[scenario->tag_count] = copy(tag);
        if (!scenario->tags[scenario->tag_count++]) {
            luaL_error(lua, "no memory");
        }
        lua_pop(lua, 1);
    }
    lua_pop(lua, 1);
}

/* scenario { name =, summary =, tags = { ... }, params = { ... } }: stores the declaration and ends
 * the script here. */
static int declare(lua_State *lua)
{
    gmd_scenario *scenario = lua_touserdata(lua, lua_upvalueindex(1));
    luaL_checktype(lua, 1, LUA_TTABLE);
    if (scenario->name) {
        return luaL_error(lua, "scenario { } is called twice");
    }
    check_fields(lua, 1, "name summary tags params");
    scenario->summary = copy(text_field(lua, "summary"));
    const char *name = text_field(lua, "name");
    read_tags(lua, scenario);
    if (lua_getfield(lua, 1, "params") != LUA_TNIL) {
        luaL_checktype(lua, -1, LUA_TTABLE);
        int params = lua_gettop(lua);
        lua_Unsigned count = lua_rawlen(lua, params);
        luaL_argcheck(lua, count <= MAX_PARAMS, 1, "too many parameters");
        for (lua_Unsigned i = 1; i <= count; i++) {
            lua_rawgeti(lua, params, (lua_Integer)i);
            read_param(lua, scenario);
            lua_settop(lua, params);
        }
    }
    struct declared_param *budget =
        script_declare_param(scenario, "max_instructions", DEFAULT_BUDGET,
                             "steps of the script after which it is stopped", PARAM_INTEGER);
    if (budget) {
        budget->least = 1;
    }
    scenario->name = copy(name);
    binding_of(lua)->fatal = true; /* the script must not catch it: the rest of it runs later */
    return lua_error(lua);
}

static int run_head(lua_State *lua)
{
    gmd_scenario *scenario = lua_touserdata(lua, 1);
    if (sandbox_load(lua, scenario->source, scenario->length, scenario->chunk) != LUA_OK) {
        return lua_error(lua);
    }
    sandbox_functions(lua);
    lua_pushlightuserdata(lua, scenario);
    lua_pushcclosure(lua, declare, 1);
    lua_setfield(lua, -2, "scenario");
    lua_setupvalue(lua, -2, 1);
    lua_call(lua, 0, 0);
    return 0;
}

gmd_status script_read_declaration(gmd_scenario *scenario, gmd_error *error)
{
    struct binding binding = {.budget = DECLARATION_BUDGET};
    lua_State *lua = sandbox_open(&binding);
    if (!lua) {
        return gmd_fail(error, GMD_NO_MEMORY, "%s: no memory for Lua", scenario->chunk + 1);
    }
    lua_pushcfunction(lua, sandbox_place_error);
    lua_pushcfunction(lua, run_head);
    lua_pushlightuserdata(lua, scenario);
    int result = lua_pcall(lua, 1, 0, -3);
    gmd_status status = GMD_OK;
    if (!scenario->name) {
        const char *message = result == LUA_OK ? NULL : lua_tostring(lua, -1);
        const char *file = scenario->chunk + 1;
        if (!message) {
            status = gmd_fail(error, GMD_BAD_INPUT,
                              "%s: a scenario begins with scenario { name = ..., summary = "
                              "..., params = ... }",
                              file);
        } else {
            status = gmd_fail(error, GMD_BAD_INPUT, "%s", message);
            /* Messages of Lua about bytecode or lack of memory name no file. */
            if (!strstr(message, file)) {
                gmd_error_prefix(error, file);
            }
        }
    }
    lua_close(lua);
    return status;
}

/* --- values ------------------------------------------------------------------------------ */

static bool push_boolean(lua_State *lua, const char *value)
{
    bool is_true = strcmp(value, "true") == 0;
    lua_pushboolean(lua, is_true);
    return is_true || strcmp(value, "false") == 0;
}

static bool push_integer(lua_State *lua, const struct declared_param *param, const char *value)
{
    uint64_t number = 0;
    bool is_negative = value[0] == '-';
    if (!gmd_parse_size(value + is_negative, &number) || number > INT64_MAX) {
        return false;
    }
    lua_Integer whole = is_negative ? -(lua_Integer)number : (lua_Integer)number;
    lua_pushinteger(lua, whole);
    return (double)whole >= param->least && (double)whole <= param->most;
}

static bool push_number(lua_State *lua, const struct declared_param *param, const char *value)
{
    char *end;
    errno = 0;
    double number = strtod(value, &end);
    lua_pushnumber(lua, number);
    return *value && *end == '\0' && errno == 0 && number - number == 0 /* finite */
           && number >= param->least && number <= param->most;
}

static void describe_range(const struct declared_param *param, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "a number");
    if (param->least > -HUGE_VAL) {
        used += (size_t)snprintf(text + used, size - used, " from %g", param->least);
    }
    if (param->most < HUGE_VAL) {
        snprintf(text + used, size - used, " to %g", param->most);
    }
}

bool script_push_param(lua_State *lua, const gmd_scenario *scenario,
                       const struct declared_param *param, const char *value, gmd_error *error)
{
    char expected[128] = "true or false";
    bool is_good = true;
    switch (param->type) {
    case PARAM_BOOLEAN:
        is_good = push_boolean(lua, value);
        break;
    case PARAM_INTEGER:
        is_good = push_integer(lua, param, value);
        snprintf(expected, sizeof expected, "a whole number from %.0f to %.0f", param->least,
                 param->most);
        break;
    case PARAM_NUMBER:
        is_good = push_number(lua, param, value);
        describe_range(param, expected, sizeof expected);
        break;
    case PARAM_TEXT:
        lua_pushstring(lua, value);
    }
    if (!is_good) {
        gmd_fail(error, GMD_BAD_INPUT, "%s: parameter %s=%.60s: expected %s",
                 scenario->name ? scenario->name : "default", param->key, value, expected);
    }
    return is_good;
}
