/* indexing.c - elements by indices and masks, sorted, summed as they come, and spread:
 * t:index_select(1, indices). */
#include "gmd_more_operations.h"
#include "library_parts.h"

/* --- by indices --------------------------------------------------------------------------- */

typedef struct tensor *(*by_indices)(struct engine *engine, struct tensor *a, int dimension,
                                     struct tensor *indices);

static int choose(lua_State *lua, by_indices operation)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    return give_tensor(lua, operation(engine_of(lua), tensor, dimension, check_tensor(lua, 3)));
}

static int index_select(lua_State *lua)
{
    return choose(lua, op_index_select);
}

static int gather(lua_State *lua)
{
    return choose(lua, op_gather);
}

static int scatter_add(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    return give_tensor(lua, op_scatter_add(engine_of(lua), tensor, dimension, check_tensor(lua, 3),
                                           check_tensor(lua, 4)));
}

/* indices:embedding(weight) */
static int embedding(lua_State *lua)
{
    struct tensor *weight = check_tensor(lua, 2);
    luaL_argcheck(lua, weight->shape.dims == 2, 2, "a weight of [entries, features] expected");
    return give_tensor(lua, op_embedding(engine_of(lua), check_tensor(lua, 1), weight));
}

/* --- by masks ----------------------------------------------------------------------------- */

static struct tensor *operand_at(lua_State *lua, int index)
{
    return lua_type(lua, index) == LUA_TNUMBER ? NULL : check_tensor(lua, index);
}

static int compare(lua_State *lua)
{
    return give_tensor(lua, op_compare(engine_of(lua), check_tensor(lua, 1), operand_at(lua, 2)));
}

static int masked_fill(lua_State *lua)
{
    return give_tensor(
        lua, op_masked_fill(engine_of(lua), check_tensor(lua, 1), check_tensor(lua, 2), false));
}

static int where(lua_State *lua)
{
    return give_tensor(lua, op_where(engine_of(lua), check_tensor(lua, 1), operand_at(lua, 2),
                                     operand_at(lua, 3)));
}

static int lower_triangle(lua_State *lua)
{
    return give_tensor(lua, op_triangle(engine_of(lua), check_tensor(lua, 1), false));
}

static int upper_triangle(lua_State *lua)
{
    return give_tensor(lua, op_triangle(engine_of(lua), check_tensor(lua, 1), true));
}

/* --- along a dimension -------------------------------------------------------------------- */

static int cumsum(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    return give_tensor(lua, op_cumsum(engine_of(lua), tensor, dimension));
}

static int values_and_indices(lua_State *lua, struct tensor *values, struct tensor *indices)
{
    give_tensor(lua, values);
    give_tensor(lua, indices);
    return 2;
}

static int sort(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1), *indices = NULL;
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    struct tensor *values = op_sort(engine_of(lua), tensor, dimension, &indices);
    return values_and_indices(lua, values, indices);
}

static int topk(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1), *indices = NULL;
    int dimension = dimension_at(lua, 3, tensor->shape.dims);
    struct tensor *values =
        op_topk(engine_of(lua), tensor, lua_tointeger(lua, 2), dimension, &indices);
    return values_and_indices(lua, values, indices);
}

static int argmax(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    return give_tensor(lua, op_argmax(engine_of(lua), tensor, dimension, lua_toboolean(lua, 3)));
}

/* The smallest take the same memory as the largest. */
static int min(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct tensor *tensor = check_tensor(lua, 1), *indices = NULL;
    if (lua_isnil(lua, 2)) {
        if (lua_toboolean(lua, 3)) {
            return luaL_error(lua, "min: keepdim is for one dimension, and none is given");
        }
        return give_tensor(lua, op_max(engine, tensor));
    }
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    struct tensor *values =
        op_max_along(engine, tensor, dimension, lua_toboolean(lua, 3), &indices);
    return values_and_indices(lua, values, indices);
}

static int spread(lua_State *lua, bool is_root)
{
    struct tensor *tensor = check_tensor(lua, 1);
    uint32_t dimensions = dimensions_at(lua, 2, tensor->shape.dims);
    return give_tensor(
        lua, op_variance(engine_of(lua), tensor, dimensions, lua_toboolean(lua, 3), is_root));
}

static int variance(lua_State *lua)
{
    return spread(lua, false);
}

static int deviation(lua_State *lua)
{
    return spread(lua, true);
}

/* --- elementwise -------------------------------------------------------------------------- */

static int absolute(lua_State *lua)
{
    return give_tensor(lua, op_elementwise(engine_of(lua), ELEMENTWISE_ABS, check_tensor(lua, 1)));
}

static int sine(lua_State *lua)
{
    return give_tensor(lua, op_elementwise(engine_of(lua), ELEMENTWISE_SIN, check_tensor(lua, 1)));
}

static int cosine(lua_State *lua)
{
    return give_tensor(lua, op_elementwise(engine_of(lua), ELEMENTWISE_COS, check_tensor(lua, 1)));
}

static int clamp(lua_State *lua)
{
    bool has_least = !lua_isnil(lua, 2), has_most = !lua_isnil(lua, 3);
    if (!has_least && !has_most) {
        return luaL_error(lua, "clamp: a least or a most expected");
    }
    return give_tensor(lua, op_clamp(engine_of(lua), check_tensor(lua, 1), has_least && has_most));
}

/* --- the table ---------------------------------------------------------------------------- */

#define METHOD(name, function, ...)                                                                \
    {                                                                                              \
        name, function, FUNCTION_CALL, STYLE_CALL, TAKES(__VA_ARGS__)                              \
    }
#define OF_ITSELF(name, function)                                                                  \
    {                                                                                              \
        name, function, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING                                   \
    }
#define COMPARISON(name) METHOD(name, compare, NEEDS("other", OPERAND))
#define INDICES          NEEDS("dimension", DIMENSION), NEEDS("indices", TENSOR)
#define OVER             MAY_TAKE("dimension", DIMENSIONS, "nil"), OPTION("keepdim", TRUTH, "false")
/* It decides which elements, and not how many. */
#define DIAGONAL                                                                                   \
    {                                                                                              \
        .name = "diagonal", .value = VALUE_INTEGER, .absent = "0", .is_checked_only = true         \
    }
#define FILLED                                                                                     \
    NEEDS("mask", TENSOR),                                                                         \
    {                                                                                              \
        .name = "value", .value = VALUE_NUMBER, .is_checked_only = true                            \
    }

const struct script_function index_functions[] = {
    METHOD("where", where, NEEDS("condition", TENSOR), NEEDS("a", OPERAND), NEEDS("b", OPERAND)),
    END_OF_FUNCTIONS,
};

const struct script_function tensor_indexing[] = {
    METHOD("index_select", index_select, INDICES),
    METHOD("gather", gather, INDICES),
    METHOD("embedding", embedding, NEEDS("weight", TENSOR)),
    METHOD("scatter_add", scatter_add, INDICES, NEEDS("from", TENSOR)),
    COMPARISON("eq"),
    COMPARISON("ne"),
    COMPARISON("lt"),
    COMPARISON("le"),
    COMPARISON("gt"),
    COMPARISON("ge"),
    METHOD("masked_fill", masked_fill, FILLED),
    METHOD("tril", lower_triangle, DIAGONAL),
    METHOD("triu", upper_triangle, DIAGONAL),
    METHOD("cumsum", cumsum, NEEDS("dimension", DIMENSION)),
    METHOD("sort", sort, MAY_TAKE("dimension", DIMENSION, "-1"),
           {.name = "descending",
            .value = VALUE_TRUTH,
            .absent = "false",
            .by_name = true,
            .is_checked_only = true}),
    METHOD("topk", topk, NEEDS_IN("k", INTEGER, 0, (double)MAX_DIMENSION_SIZE),
           MAY_TAKE("dimension", DIMENSION, "-1")),
    METHOD("argmax", argmax, NEEDS("dimension", DIMENSION), OPTION("keepdim", TRUTH, "false")),
    METHOD("min", min, MAY_TAKE("dimension", DIMENSION, "nil"), OPTION("keepdim", TRUTH, "false")),
    METHOD("var", variance, OVER),
    METHOD("std", deviation, OVER),
    OF_ITSELF("abs", absolute),
    OF_ITSELF("sin", sine),
    OF_ITSELF("cos", cosine),
    METHOD("clamp", clamp, MAY_TAKE("least", NUMBER, "nil"), MAY_TAKE("most", NUMBER, "nil")),
    END_OF_FUNCTIONS,
};
