/* operations.c - operations on tensors that make new ones: elementwise, reductions, products,
 * joins. Those of one tensor are functions and methods. */
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "library_parts.h"

#define MAX_JOINED 65536

/* --- elementwise ------------------------------------------------------------------------- */

static int activation(lua_State *lua, enum activation kind)
{
    return give_tensor(lua, op_activation(engine_of(lua), kind, check_tensor(lua, 1)));
}

static int tanh_of(lua_State *lua)
{
    return activation(lua, ACTIVATION_TANH);
}

static int sigmoid_of(lua_State *lua)
{
    return activation(lua, ACTIVATION_SIGMOID);
}

static int exp_of(lua_State *lua)
{
    return activation(lua, ACTIVATION_EXP);
}

static int gelu_of(lua_State *lua)
{
    return activation(lua, ACTIVATION_GELU);
}

static int silu_of(lua_State *lua)
{
    return activation(lua, ACTIVATION_SILU);
}

static int log_of(lua_State *lua)
{
    return activation(lua, ACTIVATION_LOG);
}

static int leaky_relu(lua_State *lua)
{
    return activation(lua, ACTIVATION_LEAKY_RELU);
}

static int elu(lua_State *lua)
{
    return activation(lua, ACTIVATION_ELU);
}

static int softplus(lua_State *lua)
{
    return activation(lua, ACTIVATION_SOFTPLUS);
}

static int mish(lua_State *lua)
{
    return activation(lua, ACTIVATION_MISH);
}

static int hardswish(lua_State *lua)
{
    return activation(lua, ACTIVATION_HARDSWISH);
}

static int relu6(lua_State *lua)
{
    return activation(lua, ACTIVATION_RELU6);
}

static int sqrt_of(lua_State *lua)
{
    return give_tensor(lua, op_sqrt(engine_of(lua), check_tensor(lua, 1)));
}

static int rsqrt_of(lua_State *lua)
{
    return give_tensor(lua, op_rsqrt(engine_of(lua), check_tensor(lua, 1)));
}

static int relu(lua_State *lua)
{
    return give_tensor(lua, op_relu(engine_of(lua), check_tensor(lua, 1), false));
}

static int square(lua_State *lua)
{
    return give_tensor(lua, op_pow(engine_of(lua), check_tensor(lua, 1), 2));
}

static int power(lua_State *lua)
{
    return give_tensor(lua, op_pow(engine_of(lua), check_tensor(lua, 1), lua_tonumber(lua, 2)));
}

static int dropout(lua_State *lua)
{
    double p = lua_toboolean(lua, 3) ? lua_tonumber(lua, 2) : 0;
    return give_tensor(lua, op_dropout(engine_of(lua), check_tensor(lua, 1), p));
}

static int softmax(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    dimension_at(lua, 2, tensor->shape.dims);
    return give_tensor(lua, op_softmax(engine_of(lua), tensor));
}

static int log_softmax(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    dimension_at(lua, 2, tensor->shape.dims);
    return give_tensor(lua, op_log_softmax(engine_of(lua), tensor));
}

/* --- reductions -------------------------------------------------------------------------- */

enum { INPUT = 1, DIMENSIONS, KEEPDIM };

static int sum(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, INPUT);
    uint32_t dimensions = dimensions_at(lua, DIMENSIONS, tensor->shape.dims);
    return give_tensor(lua,
                       op_sum(engine_of(lua), tensor, dimensions, lua_toboolean(lua, KEEPDIM)));
}

static int mean(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, INPUT);
    uint32_t dimensions = dimensions_at(lua, DIMENSIONS, tensor->shape.dims);
    return give_tensor(lua,
                       op_mean(engine_of(lua), tensor, dimensions, lua_toboolean(lua, KEEPDIM)));
}

/* t:max(): the largest of all; t:max(dimension): values and indices. */
static int max(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct tensor *tensor = check_tensor(lua, INPUT), *indices = NULL;
    bool keepdim = lua_toboolean(lua, KEEPDIM);
    if (lua_isnil(lua, DIMENSIONS)) {
        if (keepdim) {
            return luaL_error(lua, "max: keepdim is for one dimension, and none is given");
        }
        return give_tensor(lua, op_max(engine, tensor));
    }
    int dimension = dimension_at(lua, DIMENSIONS, tensor->shape.dims);
    struct tensor *values = op_max_along(engine, tensor, dimension, keepdim, &indices);
    give_tensor(lua, values);
    give_tensor(lua, indices);
    return 2;
}

/* --- products and joins ------------------------------------------------------------------ */

static int bmm(lua_State *lua)
{
    struct tensor *a = check_tensor(lua, 1), *b = check_tensor(lua, 2);
    return give_tensor(lua, op_bmm(engine_of(lua), a, b));
}

typedef struct tensor *(*joiner)(struct engine *engine, struct tensor *const *parts, size_t count,
                                 int dimension);

static struct tensor *part_at(lua_State *lua, const struct list *list, size_t i)
{
    if (!list) {
        lua_rawgeti(lua, 1, (lua_Integer)i + 1);
        struct tensor *tensor = check_tensor(lua, -1);
        lua_pop(lua, 1);
        return tensor;
    }
    struct thing *thing = list_at(list, i);
    luaL_argcheck(lua, thing->class == &tensor_class, 1, "a list of tensors expected");
    return (struct tensor *)thing;
}

/* cat(parts, dimension): all are checked before memory is taken. */
static int join(lua_State *lua, joiner operation, int more)
{
    struct engine *engine = engine_of(lua);
    const struct list *list = (const struct list *)thing_at(lua, 1); /* NULL: a table */
    size_t count = list ? list_count(list) : (size_t)lua_rawlen(lua, 1);
    luaL_argcheck(lua, count > 0 && count <= MAX_JOINED, 1, "a list of tensors expected");
    for (size_t i = 0; i < count; i++) {
        part_at(lua, list, i);
    }
    int dimension = dimension_at(lua, 2, part_at(lua, list, 0)->shape.dims + more);
    struct tensor **parts = host_take(engine, count * sizeof(struct tensor *));
    for (size_t i = 0; i < count; i++) {
        parts[i] = part_at(lua, list, i);
    }
    struct tensor *result = operation(engine, parts, count, dimension);
    host_give(engine, parts);
    return give_tensor(lua, result);
}

static int cat(lua_State *lua)
{
    return join(lua, op_cat, 0);
}

static int stack(lua_State *lua)
{
    return join(lua, op_stack, 1);
}

static int clip(lua_State *lua)
{
    clip_grad_norm(engine_of(lua), (struct module *)check_thing(lua, 1, &module_class));
    return 0;
}

/* --- the table --------------------------------------------------------------------------- */

#define SLOPE                                                                                      \
    {                                                                                              \
        .name = "negative_slope", .value = VALUE_NUMBER, .absent = "0.01", .is_checked_only = true \
    }
/* Softmax takes the same memory along each. */
#define ALONG                                                                                      \
    {                                                                                              \
        .name = "dimension", .value = VALUE_DIMENSION, .absent = "-1", .is_checked_only = true     \
    }
#define OVER MAY_TAKE("dimension", DIMENSIONS, "nil"), OPTION("keepdim", TRUTH, "false")
#define METHOD(name, function, ...)                                                                \
    {                                                                                              \
        name, function, FUNCTION_CALL, STYLE_CALL, TAKES(__VA_ARGS__)                              \
    }
#define OF_TENSOR(name, function)                                                                  \
    {                                                                                              \
        name, function, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("tensor", TENSOR))                  \
    }
#define OF_ITSELF(name, function)                                                                  \
    {                                                                                              \
        name, function, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING                                   \
    }
#define JOINED NEEDS("parts", TENSORS), MAY_TAKE("dimension", DIMENSION, "1")

const struct script_function operation_functions[] = {
    OF_TENSOR("relu", relu),
    OF_TENSOR("gelu", gelu_of),
    OF_TENSOR("silu", silu_of),
    OF_TENSOR("tanh", tanh_of),
    OF_TENSOR("sigmoid", sigmoid_of),
    OF_TENSOR("exp", exp_of),
    METHOD("elu", elu, NEEDS("tensor", TENSOR), CHECKED("alpha", NUMBER, "1.0", 0, 0)),
    METHOD("softplus", softplus, NEEDS("tensor", TENSOR)),
    METHOD("mish", mish, NEEDS("tensor", TENSOR)),
    METHOD("hardswish", hardswish, NEEDS("tensor", TENSOR)),
    METHOD("relu6", relu6, NEEDS("tensor", TENSOR)),
    METHOD("leaky_relu", leaky_relu, NEEDS("tensor", TENSOR), SLOPE),
    METHOD("softmax", softmax, NEEDS("tensor", TENSOR), ALONG),
    METHOD("log_softmax", log_softmax, NEEDS("tensor", TENSOR), ALONG),
    METHOD("dropout", dropout, NEEDS("tensor", TENSOR), MAY_TAKE_IN("p", NUMBER, "0.5", 0, 1),
           OPTION("training", TRUTH, "true")),
    METHOD("bmm", bmm, NEEDS("a", TENSOR), NEEDS("b", TENSOR)),
    METHOD("matmul", bmm, NEEDS("a", TENSOR), NEEDS("b", TENSOR)),
    METHOD("cat", cat, JOINED),
    METHOD("stack", stack, JOINED),
    {"clip_grad_norm", clip, FUNCTION_STATEMENT, STYLE_CALL,
     TAKES(NEEDS("model", MODULE),
           {.name = "max_norm", .value = VALUE_NUMBER, .absent = "1.0", .is_checked_only = true})},
    END_OF_FUNCTIONS,
};

const struct script_function tensor_operations[] = {
    OF_ITSELF("relu", relu),
    OF_ITSELF("gelu", gelu_of),
    OF_ITSELF("silu", silu_of),
    OF_ITSELF("tanh", tanh_of),
    OF_ITSELF("sigmoid", sigmoid_of),
    OF_ITSELF("exp", exp_of),
    OF_ITSELF("log", log_of),
    OF_ITSELF("sqrt", sqrt_of),
    OF_ITSELF("rsqrt", rsqrt_of),
    OF_ITSELF("square", square),
    METHOD("pow", power, NEEDS("exponent", NUMBER)),
    METHOD("softmax", softmax, ALONG),
    METHOD("log_softmax", log_softmax, ALONG),
    METHOD("sum", sum, OVER),
    METHOD("mean", mean, OVER),
    METHOD("max", max, MAY_TAKE("dimension", DIMENSION, "nil"), OPTION("keepdim", TRUTH, "false")),
    END_OF_FUNCTIONS,
};
