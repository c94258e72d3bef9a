/* signature.h - reading a call's arguments by the table of functions. */
#ifndef SIGNATURE_H
#define SIGNATURE_H

#include "gmd_script_function.h"

#include <lua.h>

/* Puts each argument to its place in `takes`, behind the receiver: given by position, by name, or
 * absent. A call that does not fit is an error that names the function and says what it takes.
 * Returns the number of places. */
int signature_take(lua_State *lua, const struct script_group *group,
                   const struct script_function *function);

/* Raises an error: `what` has no `name`, as in "nn has no 'Liner'"; near names among the methods of
 * the class are told, or among the plain functions where it is NULL. */
int signature_unknown(lua_State *lua, const char *what, const char *name,
                      const struct thing_class *class);

#endif
