/* gmd_lua_binding.h - how Lua values stand for things of the engine: Python's variables are the
 * script's globals, results not yet bound are temporaries (docs/scenarios.md, "When memory is
 * freed"). */
#ifndef GMD_LUA_BINDING_H
#define GMD_LUA_BINDING_H

#include "gmd_script_function.h"
#include "gmd_tensor.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#define HELD_UNTIL_CLOSED (-1)

struct temporary {
    struct thing *thing; /* one reference */
    int depth;  /* of the Lua call that got it; HELD_UNTIL_CLOSED: until the hold is closed */
    bool stale; /* its statement is over: it dies before the next call */
};

/* What a call of the engine and a request to the allocator cost of the budget, in instructions. */
#define CALL_COST    20
#define REQUEST_COST 50

struct binding {
    lua_State *lua;
    struct engine *engine;
    struct temporary *temporaries; /* of the C heap: kept across Lua errors */
    size_t count, capacity;
    uint64_t budget;       /* instructions */
    uint64_t instructions; /* executed */
    size_t lua_bytes;
    bool fatal;                           /* the error under way must not be caught by the script */
    bool ran_out;                         /* out of memory was raised */
    bool is_silent;                       /* print() does nothing */
    bool no_memory;                       /* of the host */
    char message[256];                    /* the text that out of memory was raised with */
    const struct script_library *library; /* what scripts can call */
    const struct run_watch *watch;        /* borrowed; NULL while only the declaration is read */
    struct line_profile *lines;           /* of a watch that has taken over the hook; NULL: none */
};

static inline struct binding *binding_of(lua_State *lua)
{
    return *(struct binding **)lua_getextraspace(lua);
}
static inline struct engine *engine_of(lua_State *lua)
{
    return binding_of(lua)->engine;
}

/* Where the binding finds functions, operators and attributes. */
struct script_library {
    const struct script_group *groups;       /* as script_groups */
    const struct script_function *operators; /* "__add" ...; ends with a NULL name */
    lua_CFunction index;                     /* attribute of an object, item of a list, .grad ... */
    lua_CFunction set_index;
    /* Puts a call's arguments to their places (signature.h); returns how many there are. */
    int (*take_arguments)(lua_State *lua, const struct script_group *group,
                          const struct script_function *function);
    /* Raises an error: `what` has no `name`; near ones among the functions of the class are told.
     */
    int (*raise_unknown)(lua_State *lua, const char *what, const char *name,
                         const struct thing_class *class);
};

/* Creates the handles' metatable and the tables behind it, for a state whose extra space holds the
 * binding. `library` is borrowed. */
void binding_prepare(struct binding *binding, const struct script_library *library);

/* Replaces the table at the top of the stack, the base, by an environment: a read finds globals,
 * then what the base holds; a write binds a global. */
void binding_environment(struct binding *binding);

/* Adds the library's plain functions to the table at the top of the stack. */
void binding_functions(lua_State *lua, const struct script_library *library);

/* Calls `visit` for each thing that the script holds: its variables by name, in the order in which
 * they appeared, then, with a NULL name, what hold() and expressions not yet bound keep. */
void binding_roots(struct binding *binding,
                   void (*visit)(void *context, const char *name, bool is_hold,
                                 struct thing *thing),
                   void *context);

/* Drops everything that the script still holds, in the order in which its variables appeared. */
void binding_release(struct binding *binding);

/* --- for the functions ------------------------------------------------------------------- */

/* Pushes a thing and takes over the caller's reference, as a temporary. NULL pushes nil. */
int push_result(lua_State *lua, struct thing *thing);

/* Pushes the handle of a thing; no reference is taken. */
void push_handle(lua_State *lua, struct thing *thing);

/* The thing at `index`, or NULL when there is something else. A dead handle is an error. */
struct thing *thing_at(lua_State *lua, int index);
/* The thing of this class at `index`; anything else is an error that says what was expected. */
struct thing *check_thing(lua_State *lua, int index, const struct thing_class *class);
static inline struct tensor *check_tensor(lua_State *lua, int index)
{
    return (struct tensor *)check_thing(lua, index, &tensor_class);
}

/* Raises what the engine's state says, if it failed. */
void raise_failure(lua_State *lua);
/* Raises an error that scripts cannot catch. */
int raise_fatal(lua_State *lua, const char *message);
/* hold(x): see docs/scenarios.md. */
int binding_hold(lua_State *lua);

/* Calls the function at `index` without arguments and gives its status; its results, or the error,
 * are at the top. */
int binding_call_block(lua_State *lua, int index);

/* The line of the script that is running; 0: none. */
uint32_t binding_line(lua_State *lua);

#endif
