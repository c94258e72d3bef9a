#include "gmd_lua_binding.h"

#include "gmd_collector.h"
#include "gmd_grow.h"

#include <stdio.h>
#include <string.h>

/* A handle is the one Lua value that stands for a thing while the thing lives. hold() makes another
 * value that has a reference of its own until its block ends. */
typedef struct handle {
    struct thing *thing; /* NULL: it was destroyed */
    const char *class_name;
    bool is_hold;
} handle;

#define HANDLE_TYPE "gmd.handle"

/* Keys of the registry by address. */
static const char handles_key, globals_key, order_key, methods_key;

/* --- depth of calls ---------------------------------------------------------------------- */

/* The depth of the Lua function that called the running C function. A tail call counts twice: it
 * has replaced its caller, whose temporaries are still in use. */
static int call_depth(lua_State *lua)
{
    lua_Debug frame;
    int depth = 0;
    for (int level = 1; lua_getstack(lua, level, &frame); level++) {
        lua_getinfo(lua, "t", &frame);
        depth += frame.istailcall ? 2 : 1;
    }
    return depth;
}

/* --- temporaries ------------------------------------------------------------------------- */

static void remove_temporary(struct binding *binding, size_t i)
{
    struct thing *thing = binding->temporaries[i].thing;
    binding->count--;
    memmove(&binding->temporaries[i], &binding->temporaries[i + 1],
            (binding->count - i) * sizeof(struct temporary));
    thing_drop(binding->engine, thing);
}

static void add_temporary(struct binding *binding, struct thing *thing, int depth)
{
    if (!GMD_GROW(&binding->temporaries, &binding->capacity, binding->count + 1)) {
        binding->no_memory = true;
        raise_fatal(binding->lua, "the host is out of memory");
        return;
    }
    binding->temporaries[binding->count++] = (struct temporary){.thing = thing, .depth = depth};
}

/* Drops the temporaries whose statement is over. */
static void settle(struct binding *binding)
{
    for (size_t i = 0; i < binding->count;) {
        if (binding->temporaries[i].stale) {
            remove_temporary(binding, i);
        } else {
            i++;
        }
    }
}

/* A statement ends at this depth: the temporaries of its expressions, there or deeper, are no
 * longer needed. */
static void end_statement(struct binding *binding)
{
    int depth = binding->count ? call_depth(binding->lua) : 0;
    for (size_t i = 0; i < binding->count; i++) {
        binding->temporaries[i].stale |= binding->temporaries[i].depth >= depth;
    }
}

/* Drops the reference of the expression that returned `thing`, if there is one. */
static void consume(struct binding *binding, struct thing *thing, size_t limit)
{
    for (size_t i = limit; i-- > 0;) {
        struct temporary *each = &binding->temporaries[i];
        if (each->thing == thing && each->depth != HELD_UNTIL_CLOSED) {
            remove_temporary(binding, i);
            return;
        }
    }
}

/* --- handles ----------------------------------------------------------------------------- */

static handle *handle_at(lua_State *lua, int index)
{
    return luaL_testudata(lua, index, HANDLE_TYPE);
}

static void forget_handle(void *context, struct thing *thing)
{
    struct binding *binding = context;
    handle *gone = thing->handle;
    gone->thing = NULL;
    lua_rawgetp(binding->lua, LUA_REGISTRYINDEX, &handles_key);
    lua_pushnil(binding->lua);
    lua_rawsetp(binding->lua, -2, thing);
    lua_pop(binding->lua, 1);
}

static handle *new_handle(lua_State *lua, struct thing *thing, bool is_hold)
{
    handle *fresh = lua_newuserdatauv(lua, sizeof *fresh, 1);
    *fresh = (handle){thing, thing->class->name, is_hold};
    luaL_setmetatable(lua, HANDLE_TYPE);
    return fresh;
}

void push_handle(lua_State *lua, struct thing *thing)
{
    luaL_checkstack(lua, 4, NULL);
    lua_rawgetp(lua, LUA_REGISTRYINDEX, &handles_key);
    if (thing->handle) {
        lua_rawgetp(lua, -1, thing);
    } else {
        handle *fresh = new_handle(lua, thing, false);
        lua_pushvalue(lua, -1);
        lua_rawsetp(lua, -3, thing);
        thing->handle = fresh;
    }
    lua_remove(lua, -2);
}

int push_result(lua_State *lua, struct thing *thing)
{
    if (!thing) {
        lua_pushnil(lua);
        return 1;
    }
    add_temporary(binding_of(lua), thing, call_depth(lua));
    push_handle(lua, thing);
    return 1;
}

struct thing *thing_at(lua_State *lua, int index)
{
    handle *found = handle_at(lua, index);
    if (found && !found->thing) {
        luaL_error(lua,
                   "this %s is gone: nothing held it any more. A Lua local is not a reference; "
                   "assign it to a global, or hold(x)",
                   found->class_name);
    }
    return found ? found->thing : NULL;
}

struct thing *check_thing(lua_State *lua, int index, const struct thing_class *class)
{
    struct thing *thing = thing_at(lua, index);
    if (!thing || thing->class != class) {
        const char *found = thing ? thing->class->name : luaL_typename(lua, index);
        luaL_error(lua, "%s expected, got %s", class->name, found);
    }
    return thing;
}

int binding_hold(lua_State *lua)
{
    struct thing *thing = thing_at(lua, 1);
    luaL_argcheck(lua, thing, 1, "nothing to hold: a value of the engine expected");
    add_temporary(binding_of(lua), thing_keep(thing), HELD_UNTIL_CLOSED);
    new_handle(lua, thing, true);
    return 1;
}

static int close_hold(lua_State *lua)
{
    struct binding *binding = binding_of(lua);
    handle *held = handle_at(lua, 1);
    struct thing *thing = held && held->is_hold ? held->thing : NULL;
    for (size_t i = binding->count; thing && i-- > 0;) {
        struct temporary *each = &binding->temporaries[i];
        if (each->thing == thing && each->depth == HELD_UNTIL_CLOSED) {
            held->thing = NULL;
            remove_temporary(binding, i);
            break;
        }
    }
    return 0;
}

static int describe(lua_State *lua)
{
    handle *found = handle_at(lua, 1);
    char text[128];
    if (!found || !found->thing) {
        lua_pushliteral(lua, "(gone)");
    } else if (found->thing->class == &tensor_class) {
        struct tensor *tensor = (struct tensor *)found->thing;
        lua_pushfstring(lua, "tensor %s %s", shape_text(&tensor->shape, text),
                        dtype_name(tensor->dtype));
    } else {
        lua_pushstring(lua, found->class_name);
    }
    return 1;
}

/* --- calls ------------------------------------------------------------------------------- */

/* A temporary is dropped when the call that it was passed to returns, as in Python; this includes
 * items of a table: nn.Sequential { a(), b() }. */
static void consume_arguments(lua_State *lua, int arguments, size_t limit)
{
    struct binding *binding = binding_of(lua);
    for (int i = 1; i <= arguments && limit > 0; i++) {
        handle *found = handle_at(lua, i);
        if (found && found->thing && !found->is_hold) {
            size_t before = binding->count;
            consume(binding, found->thing, limit);
            limit -= before - binding->count;
        } else if (lua_istable(lua, i)) {
            lua_Integer length = (lua_Integer)lua_rawlen(lua, i);
            for (lua_Integer k = 1; k <= length && limit > 0; k++) {
                lua_rawgeti(lua, i, k);
                found = handle_at(lua, -1);
                if (found && found->thing && !found->is_hold) {
                    size_t before = binding->count;
                    consume(binding, found->thing, limit);
                    limit -= before - binding->count;
                }
                lua_pop(lua, 1);
            }
        }
    }
}

void raise_failure(lua_State *lua)
{
    struct binding *binding = binding_of(lua);
    struct engine *engine = binding->engine;
    gmd_error error = engine->error;
    switch (engine->state) {
    case ENGINE_RUNNING:
        return;
    case ENGINE_WAS_ENDED:
        raise_fatal(lua, "the run was ended");
        return;
    case ENGINE_RAN_OUT:
        binding->ran_out = true;
        luaL_where(lua, 1);
        snprintf(binding->message, sizeof binding->message,
                 "%sout of memory: %llu bytes were asked for", lua_tostring(lua, -1),
                 (unsigned long long)engine->refused_bytes);
        engine_clear(engine);
        lua_pushstring(lua, binding->message);
        lua_error(lua);
        return;
    case ENGINE_MISUSED:
        engine_clear(engine);
        luaL_error(lua, "%s", error.text);
    }
}

int raise_fatal(lua_State *lua, const char *message)
{
    binding_of(lua)->fatal = true;
    return luaL_error(lua, "%s", message);
}

int binding_call_block(lua_State *lua, int index)
{
    luaL_checktype(lua, index, LUA_TFUNCTION);
    lua_pushvalue(lua, index);
    return lua_pcall(lua, 0, LUA_MULTRET, 0);
}

/* Before the call of a statement: temporaries that are not passed to it are left from the statement
 * before. */
static void end_previous(lua_State *lua, int arguments)
{
    struct binding *binding = binding_of(lua);
    end_statement(binding);
    for (int i = 1; i <= arguments; i++) {
        handle *found = handle_at(lua, i);
        for (size_t k = 0; found && found->thing && k < binding->count; k++) {
            binding->temporaries[k].stale &= binding->temporaries[k].thing != found->thing;
        }
    }
    settle(binding);
}

/* Every function of the engine is called through here. */
static int call(lua_State *lua)
{
    const struct script_function *function = lua_touserdata(lua, lua_upvalueindex(1));
    const struct script_group *group = lua_touserdata(lua, lua_upvalueindex(2));
    struct binding *binding = binding_of(lua);
    int arguments = lua_gettop(lua);
    binding->instructions += CALL_COST;
    settle(binding);
    if (function->kind == FUNCTION_STATEMENT) {
        end_previous(lua, arguments);
    }
    arguments = binding->library->take_arguments(lua, group, function);
    size_t before = binding->count;
    int results = function->call(lua);
    if (function->kind != FUNCTION_QUERY) {
        consume_arguments(lua, arguments, before);
    }
    if (function->kind == FUNCTION_STATEMENT) {
        end_statement(binding);
        settle(binding);
    }
    collector_poll(binding->engine);
    raise_failure(lua);
    return results;
}

static void add_raw(lua_State *lua, const char *name, lua_CFunction function)
{
    lua_pushcfunction(lua, function);
    lua_setfield(lua, -2, name);
}

static void add_functions(lua_State *lua, const struct script_group *group)
{
    for (const struct script_function *each = group->functions; each->name; each++) {
        lua_pushlightuserdata(lua, (void *)(uintptr_t)each);
        lua_pushlightuserdata(lua, (void *)(uintptr_t)group);
        lua_pushcclosure(lua, call, 2);
        lua_setfield(lua, -2, each->name);
    }
}

/* nn.Liner: what a library does not have is an error, and not nil. */
static int no_such_function(lua_State *lua)
{
    const char *library = lua_tostring(lua, lua_upvalueindex(1));
    const char *name = luaL_tolstring(lua, 2, NULL);
    return binding_of(lua)->library->raise_unknown(lua, library, name, NULL);
}

/* Leaves the library's table of the table at the top at the top, as a new one where there is none.
 */
static void open_library(lua_State *lua, const char *prefix)
{
    lua_pushlstring(lua, prefix, strlen(prefix) - 1);
    lua_pushvalue(lua, -1);
    if (lua_rawget(lua, -3) == LUA_TNIL) {
        lua_pop(lua, 1);
        lua_newtable(lua);
        lua_newtable(lua);
        lua_pushvalue(lua, -3);
        lua_pushcclosure(lua, no_such_function, 1);
        lua_setfield(lua, -2, "__index");
        lua_setmetatable(lua, -2);
        lua_pushvalue(lua, -2);
        lua_pushvalue(lua, -2);
        lua_rawset(lua, -5);
    }
    lua_remove(lua, -2);
}

/* A nil that is called: the name of a function that there is not. */
static int call_of_nil(lua_State *lua)
{
    lua_Debug frame;
    bool has_name = lua_getstack(lua, 0, &frame) && lua_getinfo(lua, "n", &frame) && frame.name;
    const char *name = has_name ? frame.name : "such function";
    return binding_of(lua)->library->raise_unknown(lua, "the script", name, NULL);
}

void binding_functions(lua_State *lua, const struct script_library *library)
{
    for (const struct script_group *group = library->groups; group->prefix; group++) {
        if (!group->class && group->prefix[0]) {
            open_library(lua, group->prefix);
            add_functions(lua, group);
            lua_pop(lua, 1);
        } else if (!group->class) {
            add_functions(lua, group);
        }
    }
    lua_pushnil(lua);
    lua_newtable(lua);
    add_raw(lua, "__call", call_of_nil);
    lua_setmetatable(lua, -2);
    lua_pop(lua, 1);
}

/* --- variables --------------------------------------------------------------------------- */

/* A global holds one reference, which the binding counts. NULL: this one holds no thing. */
static struct thing *bound_thing(lua_State *lua, int globals, int name)
{
    lua_pushvalue(lua, name);
    lua_rawget(lua, globals);
    handle *old = handle_at(lua, -1);
    lua_pop(lua, 1);
    return old && !old->is_hold ? old->thing : NULL;
}

static void note_order(lua_State *lua, int name)
{
    lua_rawgetp(lua, LUA_REGISTRYINDEX, &order_key);
    lua_pushvalue(lua, name);
    if (lua_rawget(lua, -2) == LUA_TNIL) {
        lua_pushvalue(lua, name);
        lua_rawseti(lua, -3, (lua_Integer)lua_rawlen(lua, -3) + 1);
        lua_pushvalue(lua, name);
        lua_pushboolean(lua, true);
        lua_rawset(lua, -4);
    }
    lua_pop(lua, 2);
}

/* name = value: the old value loses its reference when the new one exists already. */
static int bind(lua_State *lua)
{
    struct binding *binding = binding_of(lua);
    if (lua_type(lua, 2) != LUA_TSTRING) {
        return luaL_error(lua, "a variable's name expected");
    }
    lua_pushvalue(lua, 2);
    if (lua_rawget(lua, lua_upvalueindex(1)) != LUA_TNIL) {
        return luaL_error(lua,
                          "'%s' is a parameter or a function of the engine and cannot be "
                          "assigned; take another name",
                          lua_tostring(lua, 2));
    }
    lua_settop(lua, 3);
    lua_rawgetp(lua, LUA_REGISTRYINDEX, &globals_key);
    struct thing *old = bound_thing(lua, 4, 2), *value = thing_at(lua, 3);
    if (value) {
        note_order(lua, 2);
        push_handle(lua, value); /* a hold is bound as what it holds */
        lua_replace(lua, 3);
    }
    lua_pushvalue(lua, 2);
    lua_pushvalue(lua, 3);
    lua_rawset(lua, 4);
    thing_keep(value);
    if (value) {
        consume(binding, value, binding->count);
    }
    thing_drop(binding->engine, old);
    end_statement(binding);
    raise_failure(lua);
    return 0;
}

/* object.name = value is a binding, too. */
static int set_index(lua_State *lua)
{
    struct binding *binding = binding_of(lua);
    binding->library->set_index(lua);
    struct thing *value = thing_at(lua, 3);
    if (value) {
        consume(binding, value, binding->count);
    }
    end_statement(binding);
    raise_failure(lua);
    return 0;
}

/* handle.name: a method, or what the library's index function makes of it. */
static int get_index(lua_State *lua)
{
    struct thing *thing = thing_at(lua, 1);
    if (!thing) {
        return luaL_error(lua, "a value of the engine expected");
    }
    if (lua_type(lua, 2) == LUA_TSTRING) {
        lua_rawgetp(lua, LUA_REGISTRYINDEX, &methods_key);
        lua_rawgetp(lua, -1, thing->class);
        if (lua_istable(lua, -1)) {
            lua_pushvalue(lua, 2);
            if (lua_rawget(lua, -2) != LUA_TNIL) {
                return 1;
            }
        }
        lua_settop(lua, 2);
    }
    settle(binding_of(lua));
    return binding_of(lua)->library->index(lua);
}

/* --- setting up -------------------------------------------------------------------------- */

static void no_host_memory(void *context)
{
    struct binding *binding = context;
    binding->no_memory = true;
    raise_fatal(binding->lua, "the workload keeps more than the engine's host memory allows");
}

static void new_registry_table(lua_State *lua, const void *key)
{
    lua_newtable(lua);
    lua_rawsetp(lua, LUA_REGISTRYINDEX, key);
}

uint32_t binding_line(lua_State *lua)
{
    lua_Debug frame;
    for (int level = 0; lua_getstack(lua, level, &frame); level++) {
        lua_getinfo(lua, "Sl", &frame);
        if (frame.currentline > 0 && frame.what[0] != 'C') {
            return (uint32_t)frame.currentline;
        }
    }
    return 0;
}

static uint32_t running_line(void *context)
{
    return binding_line(((const struct binding *)context)->lua);
}

/* Puts the table of methods by class into the registry. */
static void prepare_methods(lua_State *lua, const struct script_group *group)
{
    lua_newtable(lua);
    for (; group->prefix; group++) {
        if (!group->class) {
            continue;
        }
        if (lua_rawgetp(lua, -1, group->class) == LUA_TNIL) {
            lua_pop(lua, 1);
            lua_newtable(lua);
            lua_pushvalue(lua, -1);
            lua_rawsetp(lua, -3, group->class);
        }
        add_functions(lua, group);
        lua_pop(lua, 1);
    }
    lua_rawsetp(lua, LUA_REGISTRYINDEX, &methods_key);
}

void binding_prepare(struct binding *binding, const struct script_library *library)
{
    lua_State *lua = binding->lua;
    binding->library = library;
    new_registry_table(lua, &handles_key);
    new_registry_table(lua, &globals_key);
    new_registry_table(lua, &order_key);
    luaL_newmetatable(lua, HANDLE_TYPE);
    add_functions(lua, &(struct script_group){.prefix = "", .functions = library->operators});
    add_raw(lua, "__index", get_index);
    add_raw(lua, "__newindex", set_index);
    add_raw(lua, "__tostring", describe);
    add_raw(lua, "__close", close_hold);
    lua_pop(lua, 1);
    prepare_methods(lua, library->groups);
    binding->engine->hooks = (struct engine_hooks){.context = binding,
                                                   .no_memory = no_host_memory,
                                                   .gone = forget_handle,
                                                   .line = running_line};
}

void binding_environment(struct binding *binding)
{
    lua_State *lua = binding->lua;
    int base = lua_gettop(lua);
    lua_rawgetp(lua, LUA_REGISTRYINDEX, &globals_key); /* globals, then the base */
    lua_newtable(lua);
    lua_pushvalue(lua, base);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, -2);
    lua_newtable(lua); /* the environment itself stays empty, so that every write is seen */
    lua_newtable(lua);
    lua_pushvalue(lua, base + 1);
    lua_setfield(lua, -2, "__index");
    lua_pushvalue(lua, base);
    lua_pushcclosure(lua, bind, 1);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, -2);
    lua_replace(lua, base);
    lua_settop(lua, base);
}

void binding_roots(struct binding *binding,
                   void (*visit)(void *context, const char *name, bool is_hold,
                                 struct thing *thing),
                   void *context)
{
    lua_State *lua = binding->lua;
    int top = lua_gettop(lua);
    if (!lua_checkstack(lua, 6)) {
        return; /* also called where an error could not be raised */
    }
    lua_rawgetp(lua, LUA_REGISTRYINDEX, &globals_key);
    lua_rawgetp(lua, LUA_REGISTRYINDEX, &order_key);
    lua_Integer names = lua_istable(lua, -1) ? (lua_Integer)lua_rawlen(lua, -1) : 0;
    for (lua_Integer i = 1; i <= names; i++) {
        lua_rawgeti(lua, top + 2, i);
        struct thing *thing = bound_thing(lua, top + 1, top + 3);
        if (thing) {
            visit(context, lua_tostring(lua, top + 3), false, thing);
        }
        lua_settop(lua, top + 2);
    }
    lua_settop(lua, top);
    for (size_t i = 0; i < binding->count; i++) {
        visit(context, NULL, binding->temporaries[i].depth == HELD_UNTIL_CLOSED,
              binding->temporaries[i].thing);
    }
}

void binding_release(struct binding *binding)
{
    lua_State *lua = binding->lua;
    while (binding->count > 0) {
        remove_temporary(binding, binding->count - 1);
    }
    lua_settop(lua, 0);
    lua_rawgetp(lua, LUA_REGISTRYINDEX, &globals_key);
    lua_rawgetp(lua, LUA_REGISTRYINDEX, &order_key);
    lua_Integer names = (lua_Integer)lua_rawlen(lua, 2);
    for (lua_Integer i = 1; i <= names; i++) {
        lua_rawgeti(lua, 2, i);
        struct thing *thing = bound_thing(lua, 1, 3);
        lua_pushnil(lua);
        lua_rawset(lua, 1);
        thing_drop(binding->engine, thing);
    }
    lua_settop(lua, 0);
}
