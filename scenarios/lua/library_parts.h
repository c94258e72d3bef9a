/* library_parts.h - the parts of what scripts can call, each in the file of its name; library.c
 * puts them together. */
#ifndef GMD_LIBRARY_PARTS_H
#define GMD_LIBRARY_PARTS_H

#include "gmd_lua_binding.h"

extern const struct script_function tensor_methods[], module_methods[], optimizer_methods[],
    list_methods[];
extern const struct script_function script_operators[];
int script_index(lua_State *lua);
int script_set_index(lua_State *lua); /* methods.c */
extern const struct script_function
    tensor_operations[];                              /* more methods of tensors (operations.c) */
extern const struct script_function stream_methods[]; /* streams.c */

void engine_functions(lua_State *lua); /* functions.c; into the table at the top, as those below */
void run_functions(lua_State *lua);    /* run_functions.c */
void operation_functions(lua_State *lua); /* operations.c */
void stream_functions(lua_State *lua);    /* streams.c; into cuda's table */

#endif
