/* arguments.h - reading arguments: shapes, and named fields of a table with their limits. */
#ifndef GMD_ARGUMENTS_H
#define GMD_ARGUMENTS_H

#include "gmd_lua_binding.h"
#include "gmd_module.h"

#define MAX_DIMENSION_SIZE ((lua_Integer)1 << 40) /* of one dimension */

/* Field `name` of the table at `index`, or its array item number `position` where the name is
 * absent (0: none). A value out of range or of another type is an error that names the field. */
lua_Integer field_integer(lua_State *lua, int index, const char *name, int position,
                          lua_Integer least, lua_Integer most);
lua_Integer field_integer_or(lua_State *lua, int index, const char *name, lua_Integer absent,
                             lua_Integer least, lua_Integer most);
bool field_boolean(lua_State *lua, int index, const char *name, bool absent);
double field_number(lua_State *lua, int index, const char *name, double absent);
enum dtype field_dtype(lua_State *lua, int index, enum dtype absent);

/* The array part of the table at `index` as a shape. */
struct shape shape_at(lua_State *lua, int index);

/* Refuses a named field of the table at `index` that is not one of the words in `names`. A value
 * that is not a table is not checked here. */
void check_fields(lua_State *lua, int index, const char *names);

#endif
