/* parts.c - a tensor taken apart along a dimension: t:chunk(3, -1), t:split({ 512, 256 }, 2). */
#include "gmd_dot_attention.h"
#include "gmd_object.h"
#include "library_parts.h"

#define MAX_PARTS 65536

enum { SELF = 1, SIZES, DIMENSION };

/* Pushes a list of the parts. */
static int give_parts(lua_State *lua, int dimension, const int64_t *sizes, uint32_t count)
{
    struct engine *engine = engine_of(lua);
    struct list *list = list_new(engine);
    struct tensor **parts = host_take(engine, count * sizeof *parts);
    push_result(lua, (struct thing *)list);
    op_split(engine, check_tensor(lua, SELF), dimension, sizes, count, parts);
    for (uint32_t i = 0; i < count; i++) {
        list_append(engine, list, tensor_thing(parts[i]));
        tensor_drop(engine, parts[i]);
    }
    host_give(engine, parts);
    return 1;
}

/* Equal parts, of which the last may be smaller, or missing. */
static int chunk(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    const struct tensor *tensor = check_tensor(lua, SELF);
    int dimension = dimension_at(lua, DIMENSION, tensor->shape.dims);
    int64_t whole = tensor->shape.size[dimension], chunks = lua_tointeger(lua, SIZES);
    int64_t size = whole > 0 ? (whole + chunks - 1) / chunks : 0;
    uint32_t count = (uint32_t)(whole > 0 ? (whole + size - 1) / size : chunks);
    int64_t *sizes = host_take(engine, count * sizeof *sizes);
    for (uint32_t i = 0; i < count; i++) {
        sizes[i] = i + 1 < count ? size : whole - size * (int64_t)i;
    }
    int given = give_parts(lua, dimension, sizes, count);
    host_give(engine, sizes);
    return given;
}

static int split(lua_State *lua)
{
    const struct tensor *tensor = check_tensor(lua, SELF);
    struct shape sizes = shape_at(lua, SIZES);
    int dimension = dimension_at(lua, DIMENSION, tensor->shape.dims);
    int64_t sum = 0;
    for (int i = 0; i < sizes.dims; i++) {
        sum += sizes.size[i];
    }
    if (sizes.dims == 0 || sum != tensor->shape.size[dimension]) {
        return luaL_error(lua, "split: the sizes are %I together, and the dimension has %I",
                          (LUAI_UACINT)sum, (LUAI_UACINT)tensor->shape.size[dimension]);
    }
    return give_parts(lua, dimension, sizes.size, (uint32_t)sizes.dims);
}

#define ALONG MAY_TAKE("dimension", DIMENSION, "1")

const struct script_function tensor_parts[] = {
    {"chunk", chunk, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS_IN("chunks", INTEGER, 1, MAX_PARTS), ALONG)},
    {"split", split, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS_IN("sizes", SIZES, 0, MAX_DIMENSION_SIZE), ALONG)},
    END_OF_FUNCTIONS,
};
