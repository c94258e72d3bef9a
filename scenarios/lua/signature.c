#include "signature.h"

#include "arguments.h"
#include "gmd_capture.h"
#include "gmd_min.h"
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "gmd_spelling.h"
#include "stream.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define USAGE_SIZE 320

/* --- how a call is written --------------------------------------------------------------- */

typedef struct writer {
    char *text;
    size_t size, length;
} writer;

static void put(writer *out, const char *part)
{
    size_t left = out->length < out->size ? out->size - out->length : 0;
    out->length += (size_t)snprintf(left ? out->text + out->length : NULL, left, "%s", part);
}

static void put_parameter(writer *out, const struct script_parameter *each, bool named)
{
    bool has_default = each->absent && strcmp(each->absent, "nil") != 0;
    put(out, each->name);
    put(out, has_default ? " = " : named ? " =" : "");
    put(out, has_default ? each->absent : "");
}

/* Those that must be given, or those that need not; `named`: those without a position. */
static int put_some(writer *out, const struct script_parameter *takes, const char *first,
                    bool required, int named)
{
    int count = 0;
    for (const struct script_parameter *each = takes; each->name; each++) {
        if ((each->absent == NULL) == required && (named < 0 || each->by_name == (named == 1))) {
            put(out, count++ ? ", " : first);
            put_parameter(out, each, each->by_name);
        }
    }
    return count;
}

static void put_table(writer *out, const struct script_parameter *takes)
{
    if (!takes->name) {
        put(out, "()");
        return;
    }
    put(out, " {");
    int required = put_some(out, takes, " ", true, -1);
    put(out, put_some(out, takes, required ? " [, " : " [", false, -1) ? "] }" : " }");
}

static void put_call(writer *out, const struct script_parameter *takes)
{
    put(out, "(");
    int required = put_some(out, takes, "", true, 0);
    int optional = put_some(out, takes, required ? " [, " : "[", false, 0);
    put(out, optional ? "]" : "");
    const char *first = required + optional ? " [, { " : "[{ ";
    put(out, put_some(out, takes, first, false, 1) ? " }])" : ")");
}

size_t script_usage(const struct script_group *group, const struct script_function *function,
                    char *text, size_t size)
{
    writer out = {text, size, 0};
    if (size > 0) {
        text[0] = '\0';
    }
    put(&out, group->prefix);
    put(&out, function->name);
    if (function->style == STYLE_CALL) {
        put_call(&out, function->takes);
    } else {
        put_table(&out, function->takes);
    }
    return out.length;
}

/* --- what is wrong ----------------------------------------------------------------------- */

typedef struct reader {
    lua_State *lua;
    const struct script_group *group;
    const struct script_function *function;
    int receiver; /* 1: slot 1 is the receiver; 0: there is none */
    int options;  /* where the table of options lies; 0: none is given */
    int given;    /* arguments by position */
    int first;    /* the first of them; 0: they are items of the table */
} reader;

static int refuse(const reader *call, const char *problem)
{
    char usage[USAGE_SIZE];
    script_usage(call->group, call->function, usage, sizeof usage);
    return luaL_error(call->lua, "%s%s: %s; it is called as %s", call->group->prefix,
                      call->function->name, problem, usage);
}

static const char *const expected[SCRIPT_VALUES] = {
    [VALUE_TENSOR] = "tensor expected",
    [VALUE_MODULE] = "module expected",
    [VALUE_OPTIMIZER] = "optimizer expected",
    [VALUE_STREAM] = "stream expected",
    [VALUE_GRAPH] = "graph expected",
    [VALUE_HELD] = "a value of the engine expected",
    [VALUE_OPERAND] = "a tensor or a number expected",
    [VALUE_TRUTH] = "true or false expected",
    [VALUE_SWITCH] = "true, false or a whole number expected",
    [VALUE_INTEGER] = "a whole number expected",
    [VALUE_NUMBER] = "a number expected",
    [VALUE_TEXT] = "a text expected",
    [VALUE_DTYPE] = "float32, float64, float16, bfloat16, int64, int32, uint8 or bool expected",
    [VALUE_FUNCTION] = "a function expected",
    [VALUE_DIMENSION] = "a dimension expected: they count from 1, -1 is the last",
    [VALUE_DIMENSIONS] = "dimensions expected: they count from 1, -1 is the last",
    [VALUE_PAIR] = "a whole number, or a table of one for each dimension, expected",
    [VALUE_SIZES] = "a table of whole numbers expected",
    [VALUE_TENSORS] = "a table or a list of tensors expected",
    [VALUE_MODULES] = "a table of modules expected",
    [VALUE_TRAINABLES] = "a table of modules, tensors or lists of them expected",
    [VALUE_CHOICES] = "a table expected",
};

static const char *kind_of(lua_State *lua, int index)
{
    const struct thing *thing = thing_at(lua, index);
    return thing                    ? thing->class->name
           : lua_isnil(lua, index)  ? "nothing"
           : lua_isnone(lua, index) ? "nothing"
                                    : luaL_typename(lua, index);
}

static int mistaken(const reader *call, const struct script_parameter *each, int index)
{
    return luaL_error(call->lua, "%s%s: %s: %s, got %s", call->group->prefix, call->function->name,
                      each->name, expected[each->value], kind_of(call->lua, index));
}

/* --- one value --------------------------------------------------------------------------- */

static bool is_thing(lua_State *lua, int index, const struct thing_class *class)
{
    const struct thing *thing = thing_at(lua, index);
    return thing && (!class || thing->class == class);
}

static bool is_whole(lua_State *lua, int index)
{
    int is_integer = 0;
    lua_tointegerx(lua, index, &is_integer);
    return is_integer && lua_type(lua, index) == LUA_TNUMBER;
}

static void check_range(const reader *call, const struct script_parameter *each, int index)
{
    double value = lua_tonumber(call->lua, index);
    bool is_any = each->least == 0 && each->most == 0;
    if (!is_any && !(value >= each->least && value <= each->most)) {
        char text[128];
        snprintf(text, sizeof text, "%.16g is not between %.16g and %.16g", value, each->least,
                 each->most);
        luaL_error(call->lua, "%s%s: %s: %s", call->group->prefix, call->function->name, each->name,
                   text);
    }
}

/* Items of a table of whole numbers lie within the limits, too. */
static bool are_whole(const reader *call, const struct script_parameter *each, int index)
{
    lua_State *lua = call->lua;
    lua_Integer count = lua_istable(lua, index) ? (lua_Integer)lua_rawlen(lua, index) : -1;
    bool is_good = count >= 0;
    for (lua_Integer i = 1; is_good && i <= count; i++) {
        lua_rawgeti(lua, index, i);
        is_good = is_whole(lua, -1);
        if (is_good) {
            check_range(call, each, lua_gettop(lua));
        }
        lua_pop(lua, 1);
    }
    return is_good;
}

static bool are_things(lua_State *lua, int index, const struct thing_class *class)
{
    lua_Integer count = lua_istable(lua, index) ? (lua_Integer)lua_rawlen(lua, index) : -1;
    bool is_good = count >= 0;
    for (lua_Integer i = 1; is_good && i <= count; i++) {
        lua_rawgeti(lua, index, i);
        is_good = is_thing(lua, lua_gettop(lua), class);
        lua_pop(lua, 1);
    }
    return is_good;
}

static bool is_dtype(lua_State *lua, int index)
{
    enum dtype dtype;
    return lua_type(lua, index) == LUA_TSTRING && dtype_parse(lua_tostring(lua, index), &dtype);
}

/* A table, or what may stand for one. */
static bool takes_a_table(enum script_value value)
{
    return value == VALUE_DIMENSIONS || value == VALUE_PAIR || value >= VALUE_SIZES;
}

/* The class of a thing; NULL: the value is of another kind. */
static const struct thing_class *class_of(enum script_value value)
{
    switch (value) {
    case VALUE_TENSOR:
        return &tensor_class;
    case VALUE_MODULE:
        return &module_class;
    case VALUE_OPTIMIZER:
        return &optimizer_class;
    case VALUE_STREAM:
        return &stream_class;
    case VALUE_GRAPH:
        return &cuda_graph_class;
    default:
        return NULL;
    }
}

static bool fits_plain(lua_State *lua, enum script_value value, int index)
{
    switch (value) {
    case VALUE_TRUTH:
        return lua_isboolean(lua, index);
    case VALUE_SWITCH:
        return lua_isboolean(lua, index) || is_whole(lua, index);
    case VALUE_INTEGER:
    case VALUE_DIMENSION:
        return is_whole(lua, index);
    case VALUE_NUMBER:
        return lua_type(lua, index) == LUA_TNUMBER && !isnan(lua_tonumber(lua, index));
    case VALUE_TEXT:
        return lua_type(lua, index) == LUA_TSTRING || lua_type(lua, index) == LUA_TNUMBER;
    case VALUE_DTYPE:
        return is_dtype(lua, index);
    default:
        return value == VALUE_FUNCTION && lua_isfunction(lua, index);
    }
}

static bool fits_table(const reader *call, const struct script_parameter *each, int index)
{
    lua_State *lua = call->lua;
    switch (each->value) {
    case VALUE_DIMENSIONS:
    case VALUE_PAIR:
        return is_whole(lua, index) || are_whole(call, each, index);
    case VALUE_SIZES:
        return are_whole(call, each, index);
    case VALUE_TENSORS:
        return is_thing(lua, index, &list_class) || are_things(lua, index, &tensor_class);
    case VALUE_MODULES:
        return are_things(lua, index, &module_class);
    case VALUE_TRAINABLES:
        return are_things(lua, index, NULL);
    default:
        return lua_istable(lua, index);
    }
}

static bool fits(const reader *call, const struct script_parameter *each, int index)
{
    lua_State *lua = call->lua;
    if (class_of(each->value)) {
        return is_thing(lua, index, class_of(each->value));
    }
    if (each->value == VALUE_HELD) {
        return is_thing(lua, index, NULL);
    }
    if (each->value == VALUE_OPERAND) {
        return lua_type(lua, index) == LUA_TNUMBER || is_thing(lua, index, &tensor_class);
    }
    return takes_a_table(each->value) ? fits_table(call, each, index)
                                      : fits_plain(lua, each->value, index);
}

/* Whether the key at the top is the number of an item of the table. */
static bool is_item(lua_State *lua, int table)
{
    lua_Integer i = lua_isinteger(lua, -1) ? lua_tointeger(lua, -1) : 0;
    return i >= 1 && i <= (lua_Integer)lua_rawlen(lua, table);
}

/* Names in a table that is a value, and has no options, would be ignored. */
static void check_items(const reader *call, const struct script_parameter *each, int index)
{
    lua_State *lua = call->lua;
    if (!lua_istable(lua, index) || (call->options && lua_rawequal(lua, index, call->options))) {
        return;
    }
    for (lua_pushnil(lua); lua_next(lua, index);) {
        lua_pop(lua, 1);
        if (!is_item(lua, index)) {
            luaL_error(lua, "%s%s: %s: a table of items expected, and '%s' is none",
                       call->group->prefix, call->function->name, each->name,
                       luaL_tolstring(lua, -1, NULL));
        }
    }
}

static void check_value(const reader *call, const struct script_parameter *each, int index)
{
    if (!fits(call, each, index)) {
        mistaken(call, each, index);
    }
    check_items(call, each, index);
    if (lua_type(call->lua, index) == LUA_TNUMBER && each->value != VALUE_TEXT) {
        check_range(call, each, index);
    }
}

static void push_absent(lua_State *lua, const char *absent)
{
    if (strcmp(absent, "true") == 0 || strcmp(absent, "false") == 0) {
        lua_pushboolean(lua, absent[0] == 't');
    } else if (absent[0] == '"') {
        lua_pushlstring(lua, absent + 1, strlen(absent) - 2);
    } else if (lua_stringtonumber(lua, absent) == 0) {
        lua_pushnil(lua); /* "nil", and values that are derived from other arguments */
    }
}

/* --- all values of a call ---------------------------------------------------------------- */

/* The parameter at a position; NULL: there is none. */
static const struct script_parameter *at_position(const reader *call, int position)
{
    for (const struct script_parameter *each = call->function->takes; each->name; each++) {
        if (!each->by_name && position-- == 0) {
            return each;
        }
    }
    return NULL;
}

static bool is_empty(lua_State *lua, int index)
{
    lua_pushnil(lua);
    bool has_key = lua_next(lua, index);
    lua_pop(lua, has_key ? 2 : 0);
    return !has_key;
}

/* The last argument may be a table of options, of a value and options, or of all values. */
static void find_options(reader *call)
{
    lua_State *lua = call->lua;
    int last = lua_gettop(lua);
    while (last > call->receiver && lua_isnil(lua, last)) {
        last--; /* as if they were not there */
    }
    call->first = call->receiver + 1;
    call->given = last - call->receiver;
    if (call->given == 0 || !lua_istable(lua, last)) {
        return;
    }
    const struct script_parameter *each = at_position(call, call->given - 1);
    bool takes_table = each && takes_a_table(each->value);
    bool has_items = lua_rawlen(lua, last) > 0;
    bool is_value = has_items || call->function->style == STYLE_ITEMS || is_empty(lua, last);
    if (call->function->style == STYLE_TABLE && call->given == 1) {
        call->first = 0;
        call->given = (int)gmd_min(lua_rawlen(lua, last), INT_MAX);
    } else if (has_items && !takes_table) {
        return; /* of another kind than is expected */
    } else if (!takes_table || !is_value || (!has_items && each->absent)) {
        call->given--;
    }
    call->options = last;
}

static bool is_option(const struct script_function *function, const char *name)
{
    for (const struct script_parameter *each = function->takes; each->name; each++) {
        if (strcmp(each->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void refuse_option(const reader *call, const char *name)
{
    char problem[USAGE_SIZE];
    gmd_near near;
    gmd_near_begin(&near, name);
    for (const struct script_parameter *each = call->function->takes; each->name; each++) {
        gmd_near_offer(&near, each->name);
    }
    snprintf(problem, sizeof problem, "'%.60s' is not known here%s", name, gmd_near_text(&near));
    refuse(call, problem);
}

/* Keys of a table are names of parameters, or items without a gap. */
static void check_keys(const reader *call)
{
    lua_State *lua = call->lua;
    for (lua_pushnil(lua); lua_next(lua, call->options);) {
        lua_pop(lua, 1);
        if (lua_type(lua, -1) == LUA_TSTRING) {
            if (!is_option(call->function, lua_tostring(lua, -1))) {
                refuse_option(call, lua_tostring(lua, -1));
            }
        } else if (!is_item(lua, call->options)) {
            refuse(call, "its table has a key that is neither an item nor a name");
        }
    }
}

static int count_positions(const reader *call)
{
    int count = 0;
    for (const struct script_parameter *each = call->function->takes; each->name; each++) {
        count += !each->by_name;
    }
    return count;
}

static void check_count(const reader *call)
{
    int most = count_positions(call);
    if (call->given > most) {
        char problem[96];
        snprintf(problem, sizeof problem, "it takes at most %d argument%s, and here are %d", most,
                 most == 1 ? "" : "s", call->given);
        refuse(call, problem);
    }
}

/* Pushes what was given for it, or nil. */
static void push_given(const reader *call, const struct script_parameter *each, int position)
{
    lua_State *lua = call->lua;
    bool is_there = !each->by_name && position < call->given;
    if (!is_there) {
        lua_pushnil(lua);
    } else if (call->first == 0) {
        lua_rawgeti(lua, call->options, position + 1);
    } else {
        lua_pushvalue(lua, call->first + position);
    }
    if (!call->options) {
        return;
    }
    lua_pushstring(lua, each->name);
    lua_rawget(lua, call->options);
    if (!lua_isnil(lua, -1) && !lua_isnil(lua, -2)) {
        luaL_error(lua, "%s%s: %s is given twice", call->group->prefix, call->function->name,
                   each->name);
    }
    lua_remove(lua, lua_isnil(lua, -1) ? -1 : -2);
}

static void push_argument(const reader *call, const struct script_parameter *each, int position)
{
    lua_State *lua = call->lua;
    push_given(call, each, position);
    int index = lua_gettop(lua);
    if (!lua_isnil(lua, index)) {
        check_value(call, each, index);
    } else if (each->absent) {
        lua_pop(lua, 1);
        push_absent(lua, each->absent);
    } else {
        char problem[USAGE_SIZE];
        snprintf(problem, sizeof problem, "%s: %s, got nothing", each->name, expected[each->value]);
        refuse(call, problem);
    }
}

static void check_receiver(const reader *call)
{
    if (call->receiver && !is_thing(call->lua, 1, call->group->class)) {
        luaL_error(call->lua, "%s%s: %s expected, got %s; a method is called with ':'",
                   call->group->prefix, call->function->name, call->group->class->name,
                   lua_gettop(call->lua) ? kind_of(call->lua, 1) : "nothing");
    }
}

int signature_take(lua_State *lua, const struct script_group *group,
                   const struct script_function *function)
{
    if (!function->takes) {
        return lua_gettop(lua);
    }
    reader call = {lua, group, function, group->class ? 1 : 0, 0, 0, 0};
    luaL_checkstack(lua, 24, NULL);
    check_receiver(&call);
    find_options(&call);
    if (call.options) {
        check_keys(&call);
    }
    check_count(&call);
    int before = lua_gettop(lua), places = 0, position = 0;
    for (const struct script_parameter *each = function->takes; each->name; each++, places++) {
        push_argument(&call, each, position);
        position += !each->by_name;
    }
    lua_rotate(lua, call.receiver + 1, places); /* in front of what was given */
    lua_settop(lua, before + places);
    lua_settop(lua, call.receiver + places);
    return call.receiver + places;
}

/* --- what is not there ------------------------------------------------------------------- */

int signature_unknown(lua_State *lua, const char *what, const char *name,
                      const struct thing_class *class)
{
    gmd_near near;
    gmd_near_begin(&near, name);
    for (const struct script_group *group = script_groups; group->prefix; group++) {
        for (const struct script_function *each = group->functions; each->name; each++) {
            if (group->class == class) {
                gmd_near_offer(&near, each->name);
            }
        }
    }
    return luaL_error(lua, "%s has no '%s'%s", what, name, gmd_near_text(&near));
}
