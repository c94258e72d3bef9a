/* gmd_sandbox.h - a Lua state that can compute and nothing else: no files, no clock, no randomness
 * of its own, no bytecode, bounded memory and instructions, and the same results in every run. */
#ifndef GMD_SANDBOX_H
#define GMD_SANDBOX_H

#include "gmd_lua_binding.h"

/* Opens a state that enforces the budget of `binding`, which is borrowed and stored in the state's
 * extra space. NULL: no memory. */
lua_State *sandbox_open(struct binding *binding);

/* The sandbox's own hook, run every SANDBOX_HOOK_EVERY instructions; a hook that replaces it calls
 * it. */
#define SANDBOX_HOOK_EVERY 1000
void sandbox_count(lua_State *lua, lua_Debug *frame);

/* Raises an error that the script cannot catch where it has used up its budget. For functions of
 * the engine that do much at once; otherwise the hook checks every SANDBOX_HOOK_EVERY instructions.
 */
void sandbox_check(lua_State *lua);

/* Like luaL_loadbufferx(), for text only; an error names file and line. */
int sandbox_load(lua_State *lua, const char *source, size_t length, const char *chunk);

/* A message handler for lua_pcall(): adds file and line to messages without them, such as Lua's own
 * and those of error(text, 0). */
int sandbox_place_error(lua_State *lua);

/* Leaves a table with the functions that every script may use at the top of the stack. */
void sandbox_functions(lua_State *lua);

#endif
