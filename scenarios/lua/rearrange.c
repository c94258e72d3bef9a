/* rearrange.c - elements in other places, and lengths of vectors: pad(t, { 1, 1 }), t:flip(2),
 * t:norm(), normalize(t). */
#include "gmd_more_operations.h"
#include "library_parts.h"

#include <string.h>

#define MAX_MARGIN 65536

/* --- in other places --------------------------------------------------------------------- */

static int flatten(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int dims = tensor->shape.dims;
    int first = dims ? dimension_at(lua, 2, dims) : 0, last = dims ? dimension_at(lua, 3, dims) : 0;
    struct shape shape = {0, {0}};
    if (last < first) {
        return luaL_error(lua, "flatten: dimension %d lies before dimension %d", last + 1,
                          first + 1);
    }
    for (int i = 0; i < dims; i++) {
        if (i <= first || i > last) {
            shape.size[shape.dims++] = tensor->shape.size[i];
        } else {
            shape.size[shape.dims - 1] =
                shape_product(shape.size[shape.dims - 1], tensor->shape.size[i]);
        }
    }
    if (dims == 0) {
        shape = (struct shape){1, {1}};
    }
    return give_tensor(lua, op_reshape_or_copy(engine_of(lua), tensor, &shape));
}

static int transposed(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    if (tensor->shape.dims != 2) {
        return luaL_error(lua,
                          "t: a matrix expected, of 2 dimensions, not %d; transpose() takes "
                          "any two of them",
                          tensor->shape.dims);
    }
    return give_tensor(lua, op_transpose(engine_of(lua), tensor, 0, 1));
}

static int flip(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    dimensions_at(lua, 2, tensor->shape.dims);
    return give_tensor(lua, op_flip(engine_of(lua), tensor));
}

static int roll(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    dimension_at(lua, 3, tensor->shape.dims);
    return give_tensor(lua, op_roll(engine_of(lua), tensor));
}

static int tile(lua_State *lua)
{
    struct shape repeats = shape_at(lua, 2);
    return give_tensor(lua, op_tile(engine_of(lua), check_tensor(lua, 1), &repeats));
}

static int pad(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int64_t margins[2 * SHAPE_MAX_DIMS];
    lua_Integer count = (lua_Integer)lua_rawlen(lua, 2);
    if (count % 2 != 0 || count > (lua_Integer)2 * tensor->shape.dims) {
        return luaL_error(lua, "pad: two margins for each dimension expected, before and after it, "
                               "the last dimension first");
    }
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(lua, 2, i + 1);
        margins[i] = lua_tointeger(lua, -1);
        lua_pop(lua, 1);
    }
    return give_tensor(lua, op_pad(engine_of(lua), tensor, margins, (int)count));
}

static int interpolate(lua_State *lua)
{
    struct upsample to = upsample_at(lua, 2, "interpolate");
    return give_tensor(lua, op_upsample(engine_of(lua), check_tensor(lua, 1), to));
}

/* --- lengths ----------------------------------------------------------------------------- */

enum { INPUT = 1, DIMENSIONS, KEEPDIM };

typedef struct tensor *(*reduction_fn)(struct engine *engine, struct tensor *a, uint32_t dimensions,
                                       bool keepdim);

static int reduced(lua_State *lua, reduction_fn reduction)
{
    struct tensor *tensor = check_tensor(lua, INPUT);
    uint32_t dimensions = dimensions_at(lua, DIMENSIONS, tensor->shape.dims);
    if (!dtype_is_floating(tensor->dtype)) {
        return luaL_error(lua, "floating numbers expected, not %s", dtype_name(tensor->dtype));
    }
    return give_tensor(lua,
                       reduction(engine_of(lua), tensor, dimensions, lua_toboolean(lua, KEEPDIM)));
}

static int norm(lua_State *lua)
{
    return reduced(lua, op_vector_norm);
}

static int logsumexp(lua_State *lua)
{
    return reduced(lua, op_logsumexp);
}

static int normalize(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, INPUT);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    if (!dtype_is_floating(tensor->dtype)) {
        return luaL_error(lua, "floating numbers expected, not %s", dtype_name(tensor->dtype));
    }
    return give_tensor(lua, op_normalize(engine_of(lua), tensor, dimension));
}

/* --- the tables -------------------------------------------------------------------------- */

#define OVER OPTION("keepdim", TRUTH, "false")

const struct script_function rearranging_functions[] = {
    {"pad", pad, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("tensor", TENSOR), NEEDS_IN("margins", SIZES, -MAX_MARGIN, MAX_MARGIN),
           CHECKED("value", NUMBER, "0", 0, 0))},
    {"interpolate", interpolate, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("tensor", TENSOR), OPTION_IN("size", PAIR, "nil", 1, 65536),
           OPTION_IN("scale_factor", NUMBER, "nil", 1e-3, 1024),
           OPTION("mode", TEXT, "\"nearest\""))},
    {"normalize", normalize, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("tensor", TENSOR), MAY_TAKE("dimension", DIMENSION, "2"))},
    END_OF_FUNCTIONS,
};

const struct script_function tensor_rearrangements[] = {
    {"flatten", flatten, FUNCTION_CALL, STYLE_CALL,
     TAKES(MAY_TAKE("first", DIMENSION, "1"), MAY_TAKE("last", DIMENSION, "-1"))},
    {"t", transposed, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"flip", flip, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("dimensions", DIMENSIONS))},
    {"roll", roll, FUNCTION_CALL, STYLE_CALL,
     TAKES({.name = "shift", .value = VALUE_INTEGER, .is_checked_only = true},
           NEEDS("dimension", DIMENSION))},
    {"tile", tile, FUNCTION_CALL, STYLE_ITEMS,
     TAKES(NEEDS_IN("repeats", SIZES, 1, (double)MAX_DIMENSION_SIZE))},
    {"norm", norm, FUNCTION_CALL, STYLE_CALL,
     TAKES(MAY_TAKE("dimension", DIMENSIONS, "nil"), OVER)},
    {"logsumexp", logsumexp, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("dimension", DIMENSIONS), OVER)},
    END_OF_FUNCTIONS,
};
