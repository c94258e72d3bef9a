/* arguments.h - reading arguments: shapes, and named fields of a table with their limits. */
#ifndef GMD_LUA_ARGUMENTS_H
#define GMD_LUA_ARGUMENTS_H

#include "gmd_lua_binding.h"
#include "gmd_module.h"

#define GMD_MAX_SIZE ((lua_Integer)1 << 40) /* of one dimension */

/* Field `name` of the table at `index`, or its array item number `position` where the name is
 * absent (0: none). Out of range or of another type: an error that names it. */
lua_Integer gmd_field_integer(lua_State *lua, int index, const char *name, int position,
                              lua_Integer least, lua_Integer most);
lua_Integer gmd_field_integer_or(lua_State *lua, int index, const char *name, lua_Integer absent,
                                 lua_Integer least, lua_Integer most);
bool gmd_field_boolean(lua_State *lua, int index, const char *name, bool absent);
double gmd_field_number(lua_State *lua, int index, const char *name, double absent);
gmd_dtype gmd_field_dtype(lua_State *lua, int index, gmd_dtype absent);

/* The array part of the table at `index` as a shape. */
gmd_shape gmd_shape_at(lua_State *lua, int index);

/* Refuses a named field of the table at `index` that is not one of the words in `names`. What is no
 * table is left to others to refuse. */
void gmd_known_fields(lua_State *lua, int index, const char *names);

#endif
