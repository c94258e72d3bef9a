/* objects.c - Python's objects, lists and garbage collector in scripts. */
#include "gmd_collector.h"
#include "gmd_module.h"
#include "gmd_object.h"
#include "gmd_sandbox.h"
#include "library_parts.h"

static int new_object(lua_State *lua)
{
    return push_result(lua, (struct thing *)object_new(engine_of(lua)));
}

static int new_list(lua_State *lua)
{
    return push_result(lua, (struct thing *)list_new(engine_of(lua)));
}

static int gc_collect(lua_State *lua)
{
    size_t found = collector_collect(engine_of(lua), (int)lua_tointeger(lua, 1));
    lua_pushinteger(lua, (lua_Integer)found);
    return 1;
}

static int gc_enable(lua_State *lua)
{
    collector_enable(engine_of(lua), true);
    return 0;
}

static int gc_disable(lua_State *lua)
{
    collector_enable(engine_of(lua), false);
    return 0;
}

static int gc_count(lua_State *lua)
{
    uint64_t counts[COLLECTOR_GENERATIONS];
    collector_counts(engine_of(lua), counts);
    for (int i = 0; i < COLLECTOR_GENERATIONS; i++) {
        lua_pushinteger(lua, (lua_Integer)counts[i]);
    }
    return COLLECTOR_GENERATIONS;
}

static void take_counts(lua_State *lua, uint64_t counts[COLLECTOR_GENERATIONS])
{
    for (int i = 0; i < COLLECTOR_GENERATIONS; i++) {
        counts[i] = (uint64_t)lua_tointeger(lua, i + 1);
    }
}

static int gc_set_count(lua_State *lua)
{
    uint64_t counts[COLLECTOR_GENERATIONS];
    take_counts(lua, counts);
    collector_set_counts(engine_of(lua), counts);
    return 0;
}

static int gc_set_threshold(lua_State *lua)
{
    uint64_t thresholds[COLLECTOR_GENERATIONS];
    take_counts(lua, thresholds);
    collector_set_thresholds(engine_of(lua), thresholds);
    return 0;
}

static int gc_background(lua_State *lua)
{
    lua_Integer objects = lua_tointeger(lua, 1), refill = lua_tointeger(lua, 2);
    collector_background(engine_of(lua), (uint64_t)objects, (uint64_t)refill,
                         binding_of(lua)->budget);
    sandbox_check(lua);
    return 0;
}

#define MOST_COUNT  1e9
#define COUNT(name) NEEDS_IN(name, INTEGER, 0, 9e15)

const struct script_function object_functions[] = {
    {"object", new_object, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"list", new_list, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    END_OF_FUNCTIONS,
};

const struct script_function gc_functions[] = {
    {"collect", gc_collect, FUNCTION_STATEMENT, STYLE_CALL,
     TAKES(MAY_TAKE_IN("generation", INTEGER, "2", 0, COLLECTOR_GENERATIONS - 1))},
    {"enable", gc_enable, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING},
    {"disable", gc_disable, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING},
    {"get_count", gc_count, FUNCTION_QUERY, STYLE_CALL, TAKES_NOTHING},
    {"set_count", gc_set_count, FUNCTION_STATEMENT, STYLE_CALL,
     TAKES(COUNT("youngest"), COUNT("middle"), COUNT("oldest"))},
    {"set_threshold", gc_set_threshold, FUNCTION_STATEMENT, STYLE_CALL,
     TAKES(COUNT("youngest"), COUNT("middle"), COUNT("oldest"))},
    {"background", gc_background, FUNCTION_STATEMENT, STYLE_TABLE,
     TAKES(NEEDS_IN("objects", INTEGER, 0, MOST_COUNT),
           OPTION_IN("free_lists", INTEGER, "0", 0, MOST_COUNT))},
    END_OF_FUNCTIONS,
};

/* --- lists ------------------------------------------------------------------------------- */

static struct list *check_list(lua_State *lua)
{
    return (struct list *)check_thing(lua, 1, &list_class);
}

static int call_list_append(lua_State *lua)
{
    list_append(engine_of(lua), check_list(lua), thing_at(lua, 2));
    return 0;
}

static int call_list_pop(lua_State *lua)
{
    struct list *list = check_list(lua);
    lua_Integer count = (lua_Integer)list_count(list);
    lua_Integer i = lua_isnil(lua, 2) ? count : lua_tointeger(lua, 2);
    luaL_argcheck(lua, i >= 1 && i <= count, 2, "no such item (they count from 1)");
    return push_result(lua, list_take(list, (size_t)i - 1));
}

static int call_list_clear(lua_State *lua)
{
    list_clear(engine_of(lua), check_list(lua));
    return 0;
}

int list_length(lua_State *lua)
{
    struct thing *thing = thing_at(lua, 1);
    if (thing && thing->class == &module_class &&
        module_is_sequential((const struct module *)thing)) {
        lua_pushinteger(lua, (lua_Integer)((const struct module *)thing)->child_count);
        return 1;
    }
    if (!thing || thing->class != &list_class) {
        return luaL_error(lua, "only a list and a Sequential have a length");
    }
    lua_pushinteger(lua, (lua_Integer)list_count((struct list *)thing));
    return 1;
}

const struct script_function list_methods[] = {
    {"append", call_list_append, FUNCTION_STATEMENT, STYLE_CALL, TAKES(NEEDS("value", HELD))},
    {"pop", call_list_pop, FUNCTION_CALL, STYLE_CALL, TAKES(MAY_TAKE("i", INTEGER, "nil"))},
    {"clear", call_list_clear, FUNCTION_STATEMENT, STYLE_CALL, TAKES_NOTHING},
    END_OF_FUNCTIONS,
};
