/* views.c - views of tensors, parts of them, and copies of other layouts and types. */
#include "gmd_object.h"
#include "library_parts.h"

#define MAX_PARTS 65536

static int view(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    struct shape shape = inferred_shape_at(lua, 2, shape_count(&tensor->shape));
    return give_tensor(lua, op_view_as_it_lies(engine_of(lua), tensor, &shape));
}

static int reshape(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    struct shape shape = inferred_shape_at(lua, 2, shape_count(&tensor->shape));
    return give_tensor(lua, op_reshape_or_copy(engine_of(lua), tensor, &shape));
}

static int detach(lua_State *lua)
{
    return push_result(lua, tensor_thing(tensor_alias(engine_of(lua), check_tensor(lua, 1))));
}

/* t:narrow(dimension, start, length); start counts from 1. */
static int narrow(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    lua_Integer start = lua_tointeger(lua, 3), length = lua_tointeger(lua, 4);
    if (start - 1 + length > tensor->shape.size[dimension]) {
        return luaL_error(lua, "narrow: %I from %I on do not lie in the dimension of %I",
                          (LUAI_UACINT)length, (LUAI_UACINT)start,
                          (LUAI_UACINT)tensor->shape.size[dimension]);
    }
    return give_tensor(lua, op_narrow(engine_of(lua), tensor, dimension, length));
}

/* t:select(dimension, i); which one it is does not matter to the memory. */
static int select_one(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    lua_Integer i = lua_tointeger(lua, 3), size = tensor->shape.size[dimension];
    if (i > size || i < -size || i == 0) {
        return luaL_error(lua, "select: no item %I of %I (they count from 1; -1 is the last)",
                          (LUAI_UACINT)i, (LUAI_UACINT)size);
    }
    return give_tensor(lua, op_select(engine_of(lua), tensor, dimension));
}

static int transpose(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int first = dimension_at(lua, 2, tensor->shape.dims);
    int second = dimension_at(lua, 3, tensor->shape.dims);
    return give_tensor(lua, op_transpose(engine_of(lua), tensor, first, second));
}

static int permute(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int dims = tensor->shape.dims, order[SHAPE_MAX_DIMS] = {0};
    struct shape given = shape_at(lua, 2);
    uint32_t seen = dimensions_at(lua, 2, dims);
    if (given.dims != dims || seen != (1u << dims) - 1) {
        return luaL_error(lua, "permute: each of the %d dimensions once expected", dims);
    }
    for (int i = 0; i < dims; i++) {
        order[i] = (int)(given.size[i] < 0 ? given.size[i] + dims : given.size[i] - 1);
    }
    return give_tensor(lua, op_permute(engine_of(lua), tensor, order));
}

/* A new dimension may also come behind the last. */
static int unsqueeze(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    luaL_argcheck(lua, tensor->shape.dims < SHAPE_MAX_DIMS, 1,
                  "it has as many dimensions as can be");
    int dimension = dimension_at(lua, 2, tensor->shape.dims + 1);
    return give_tensor(lua, op_unsqueeze(engine_of(lua), tensor, dimension));
}

/* Dimensions of another size than 1 stay. */
static int squeeze(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    uint32_t dimensions = dimensions_at(lua, 2, tensor->shape.dims);
    return give_tensor(lua, op_squeeze(engine_of(lua), tensor, dimensions));
}

/* -1: the size that the dimension has. */
static int expand(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    struct shape shape = shape_at(lua, 2);
    int lead = shape.dims - tensor->shape.dims;
    for (int i = 0; i < shape.dims; i++) {
        if (shape.size[i] < 0 && (i < lead || lead < 0)) {
            return luaL_error(lua, "expand: -1 stands for the size of a dimension that there is");
        }
        shape.size[i] = shape.size[i] < 0 ? tensor->shape.size[i - lead] : shape.size[i];
    }
    return give_tensor(lua, op_expand(engine_of(lua), tensor, &shape));
}

static int contiguous(lua_State *lua)
{
    return give_tensor(lua, op_contiguous(engine_of(lua), check_tensor(lua, 1)));
}

static int clone(lua_State *lua)
{
    return give_tensor(lua, op_clone(engine_of(lua), check_tensor(lua, 1)));
}

static int unbind(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct tensor *tensor = check_tensor(lua, 1);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    luaL_argcheck(lua, tensor->shape.size[dimension] <= MAX_PARTS, 1, "too many parts");
    size_t count = (size_t)tensor->shape.size[dimension];
    struct list *list = list_new(engine);
    struct tensor **parts = host_take(engine, (count + 1) * sizeof(struct tensor *));
    op_unbind(engine, tensor, dimension, parts);
    for (size_t i = 0; i < count; i++) {
        list_append(engine, list, tensor_thing(parts[i]));
        tensor_drop(engine, parts[i]);
    }
    host_give(engine, parts);
    return push_result(lua, (struct thing *)list);
}

/* --- types ------------------------------------------------------------------------------- */

static int cast_to(lua_State *lua, enum dtype dtype)
{
    return give_tensor(lua, op_cast(engine_of(lua), check_tensor(lua, 1), dtype));
}

static int to_type(lua_State *lua)
{
    return cast_to(lua, dtype_at(lua, 2, DTYPE_FLOAT32));
}

static int to_half(lua_State *lua)
{
    return cast_to(lua, DTYPE_FLOAT16);
}

static int to_float(lua_State *lua)
{
    return cast_to(lua, DTYPE_FLOAT32);
}

#define NEW_SIZES NEEDS_IN("sizes", SIZES, -1, (double)MAX_DIMENSION_SIZE)
#define PLAIN(name, function)                                                                      \
    {                                                                                              \
        name, function, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING                                   \
    }

const struct script_function tensor_views[] = {
    {"view", view, FUNCTION_CALL, STYLE_ITEMS, TAKES(NEW_SIZES)},
    {"reshape", reshape, FUNCTION_CALL, STYLE_ITEMS, TAKES(NEW_SIZES)},
    {"expand", expand, FUNCTION_CALL, STYLE_ITEMS, TAKES(NEW_SIZES)},
    {"permute", permute, FUNCTION_CALL, STYLE_ITEMS, TAKES(NEEDS("order", DIMENSIONS))},
    {"unsqueeze", unsqueeze, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("dimension", DIMENSION))},
    {"squeeze", squeeze, FUNCTION_CALL, STYLE_CALL,
     TAKES(MAY_TAKE("dimension", DIMENSIONS, "nil"))},
    {"transpose", transpose, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("first", DIMENSION), NEEDS("second", DIMENSION))},
    {"narrow", narrow, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("dimension", DIMENSION),
           {.name = "start",
            .value = VALUE_INTEGER,
            .least = 1,
            .most = (double)MAX_DIMENSION_SIZE,
            .is_checked_only = true},
           NEEDS_IN("length", INTEGER, 0, (double)MAX_DIMENSION_SIZE))},
    {"select", select_one, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("dimension", DIMENSION),
           {.name = "i", .value = VALUE_INTEGER, .absent = "1", .is_checked_only = true})},
    {"unbind", unbind, FUNCTION_CALL, STYLE_CALL, TAKES(MAY_TAKE("dimension", DIMENSION, "1"))},
    PLAIN("detach", detach),
    PLAIN("contiguous", contiguous),
    PLAIN("clone", clone),
    {"to", to_type, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("dtype", DTYPE))},
    PLAIN("half", to_half),
    PLAIN("float", to_float),
    END_OF_FUNCTIONS,
};
