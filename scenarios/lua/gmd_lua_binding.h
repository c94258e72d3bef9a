/* gmd_lua_binding.h - how Lua values stand for things of the engine: Python's variables are the
 * script's globals, results not yet bound are temporaries (docs/scenarios.md, "When memory is
 * freed"). */
#ifndef GMD_LUA_BINDING_H
#define GMD_LUA_BINDING_H

#include "gmd_engine.h"
#include "gmd_tensor.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#define GMD_HELD (-1)

typedef struct gmd_temporary {
    gmd_thing *thing; /* one reference */
    int depth;        /* of the Lua call that got it; GMD_HELD: until the hold is closed */
    bool stale;       /* its statement is over: it dies before the next call */
} gmd_temporary;

/* What a call of the engine, and a request to the allocator, count for in instructions. */
#define GMD_CALL_COST    20
#define GMD_REQUEST_COST 50

typedef struct gmd_binding {
    lua_State *lua;
    gmd_engine *engine;
    gmd_temporary *temporaries; /* of the C heap: kept across Lua errors */
    size_t count, capacity;
    uint64_t budget;       /* instructions */
    uint64_t instructions; /* executed */
    size_t lua_bytes;
    bool fatal;                        /* the error under way must not be caught by the script */
    bool ran_out;                      /* out of memory was raised */
    bool is_silent;                    /* print() does nothing */
    bool no_memory;                    /* of the host */
    char message[256];                 /* that out of memory was raised with */
    const struct gmd_library *library; /* what scripts find */
    const struct run_watch *watch;     /* borrowed; NULL while only the declaration is read */
    struct gmd_line_profile *lines;    /* of a watch that has taken over the hook; NULL: none */
} gmd_binding;

/* A function of the engine as scripts see it. */
typedef struct gmd_function {
    const char *name;
    lua_CFunction call; /* pushes its results; leaves its arguments where they are */
    enum {
        GMD_CALL = 0,
        GMD_STATEMENT = 1, /* what the expression before it left behind dies first */
        GMD_QUERY = 2,     /* looks at its arguments and does not consume them */
    } kind;
} gmd_function;

static inline gmd_binding *gmd_binding_of(lua_State *lua)
{
    return *(gmd_binding **)lua_getextraspace(lua);
}
static inline gmd_engine *engine_of(lua_State *lua)
{
    return gmd_binding_of(lua)->engine;
}

/* What the binding finds methods, operators and attributes in. Lists of functions end with a NULL
 * name. */
typedef struct gmd_class_methods {
    const gmd_thing_class *class;
    const gmd_function *methods;
} gmd_class_methods;

typedef struct gmd_library {
    const gmd_class_methods *classes; /* a class may come several times; ends with a NULL class */
    const gmd_function *operators;    /* "__add" ... */
    lua_CFunction index;              /* attribute of an object, item of a list, .grad ... */
    lua_CFunction set_index;
} gmd_library;

/* Creates the handles' metatable and the tables behind it, for a state whose extra space holds the
 * binding. `library` is borrowed. */
void gmd_binding_prepare(gmd_binding *binding, const gmd_library *library);

/* Leaves an environment on the stack: reads find globals, then the functions, then what the table
 * at `base` holds; writes bind. Pops the table at the top, which is `base`. */
void gmd_binding_environment(gmd_binding *binding);

/* Adds functions to the table at the top of the stack. */
void gmd_binding_functions(lua_State *lua, const gmd_function *functions);

/* Calls `visit` for each thing that the script holds: its variables by name, in the order in which
 * they appeared, then, with a NULL name, what hold() and expressions not yet bound keep. */
void gmd_binding_roots(gmd_binding *binding,
                       void (*visit)(void *context, const char *name, bool is_hold,
                                     gmd_thing *thing),
                       void *context);

/* Drops everything that the script still holds, in the order in which its variables appeared. */
void gmd_binding_release(gmd_binding *binding);

/* --- for the functions ------------------------------------------------------------------- */

/* Pushes a thing and takes over the caller's reference, as a temporary. NULL pushes nil. */
int gmd_push_result(lua_State *lua, gmd_thing *thing);

/* Pushes what stands for a thing; no reference is taken. */
void gmd_push_handle(lua_State *lua, gmd_thing *thing);

/* The thing at `index`, or NULL when there is something else. A dead handle is an error. */
gmd_thing *gmd_thing_at(lua_State *lua, int index);
/* The thing of this class at `index`; anything else is an error that says what was expected. */
gmd_thing *gmd_check_thing(lua_State *lua, int index, const gmd_thing_class *class);
static inline gmd_tensor *gmd_check_tensor(lua_State *lua, int index)
{
    return (gmd_tensor *)gmd_check_thing(lua, index, &gmd_tensor_class);
}

/* Raises what the engine's state says, if it failed. */
void gmd_raise_failure(lua_State *lua);
/* Raises an error that scripts cannot catch. */
int gmd_raise_fatal(lua_State *lua, const char *message);
/* hold(x): see docs/scenarios.md. */
int gmd_lua_hold(lua_State *lua);

/* Calls the function at `index` without arguments and gives its status; the error is at the top. */
int gmd_lua_call_block(lua_State *lua, int index);

/* The line of the script that is running; 0: none. */
uint32_t gmd_line_running(lua_State *lua);

#endif
