/* arguments.h - the values of arguments that signature.c has checked, and fields of a declaration.
 */
#ifndef GMD_ARGUMENTS_H
#define GMD_ARGUMENTS_H

#include "gmd_lua_binding.h"
#include "gmd_module.h"

#define MAX_DIMENSION_SIZE ((lua_Integer)1 << 40) /* of one dimension */

/* The table of whole numbers at `index` as a shape. */
struct shape shape_at(lua_State *lua, int index);
/* The same; one size may be -1, and becomes what is left of `count` elements. */
struct shape inferred_shape_at(lua_State *lua, int index, uint64_t count);

/* A dimension as scripts count them, from 1, or from the end with -1, as the engine does, from 0.
 */
int dimension_at(lua_State *lua, int index, int dims);
/* One or several, as bits; 0: none were given. */
uint32_t dimensions_at(lua_State *lua, int index, int dims);
/* A whole number for each of two dimensions, or the same for both; absent: as they are. */
void pair_at(lua_State *lua, int index, int64_t pair[2]);

/* `size`, `scale_factor` and `mode`, from `index` on; `what` takes them. */
struct upsample upsample_at(lua_State *lua, int index, const char *what);

/* The type at `index`; nothing there: `absent`. */
enum dtype dtype_at(lua_State *lua, int index, enum dtype absent);

/* Refuses a named field of the table at `index` that is not one of the words in `names`. A value
 * that is not a table is not checked here. For scenario { }, which is read before there are
 * functions. */
void check_fields(lua_State *lua, int index, const char *names);

#endif
