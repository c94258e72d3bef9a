/* library.h - what scripts can call: methods and operators by class, and functions by name. */
#ifndef GMD_LIBRARY_H
#define GMD_LIBRARY_H

#include "gmd_lua_binding.h"

/* All classes together (library.c). */
extern const struct script_library script_library;
/* All functions, into the table at the top of the stack (library.c). */
void library_functions(lua_State *lua);

#endif
