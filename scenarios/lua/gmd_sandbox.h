/* gmd_sandbox.h - a Lua state that can compute and nothing else: no files, no clock, no randomness
 * of its own, no bytecode, bounded memory and instructions, and the same results in every run. */
#ifndef GMD_SANDBOX_H
#define GMD_SANDBOX_H

#include "gmd_lua_binding.h"

/* A state whose extra space holds `binding`, which is borrowed and whose `budget` is enforced.
 * NULL: no memory. */
lua_State *gmd_sandbox_open(gmd_binding *binding);

/* What its hook does every GMD_HOOK_EVERY instructions, for a hook that takes its place. */
#define GMD_HOOK_EVERY 1000
void gmd_sandbox_count(lua_State *lua, lua_Debug *frame);

/* Raises the error that the script cannot catch, where it has used up its budget. For a function of
 * the engine that does much at once; else it is looked at every thousand instructions. */
void gmd_sandbox_check(lua_State *lua);

/* luaL_loadbufferx() of a script; whatever is wrong with it is told with file and line. */
int gmd_sandbox_load(lua_State *lua, const char *source, size_t length, const char *chunk);

/* A message handler for lua_pcall(): Lua's own words, and error(text, 0), get file and line. */
int gmd_sandbox_place_error(lua_State *lua);

/* Leaves a table with the functions that every script may use at the top of the stack. */
void gmd_sandbox_functions(lua_State *lua);

#endif
