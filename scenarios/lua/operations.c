/* operations.c - operations of tensors as scripts call them: activations, products, parts and
 * joins, in place, and what concerns other streams. */
#include "arguments.h"
#include "gmd_autocast.h"
#include "gmd_checkpoint.h"
#include "gmd_object.h"
#include "gmd_operations.h"
#include "library_parts.h"
#include "stream.h"

#define MAX_JOINED 65536

static int give(lua_State *lua, struct tensor *tensor)
{
    if (!tensor) {
        raise_failure(lua);
    }
    return push_result(lua, tensor_thing(tensor));
}

/* A dimension as scripts count them: from 1, or from the end with -1. */
static int dimension_at(lua_State *lua, int index, int dims)
{
    lua_Integer dimension = luaL_checkinteger(lua, index);
    if (dimension < 0) {
        dimension += dims + 1;
    }
    luaL_argcheck(lua, dimension >= 1 && dimension <= dims, index,
                  "no such dimension (they count from 1; -1 is the last)");
    return (int)dimension - 1;
}

/* --- activations ------------------------------------------------------------------------- */

static int activation(lua_State *lua, enum activation kind)
{
    return give(lua, op_activation(engine_of(lua), kind, check_tensor(lua, 1)));
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

static int softmax_of(lua_State *lua)
{
    return give(lua, op_softmax(engine_of(lua), check_tensor(lua, 1)));
}

static int bmm_of(lua_State *lua)
{
    struct tensor *a = check_tensor(lua, 1), *b = check_tensor(lua, 2);
    return give(lua, op_bmm(engine_of(lua), a, b));
}

/* --- parts and joins --------------------------------------------------------------------- */

static int narrow(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    lua_Integer length = luaL_checkinteger(lua, 3);
    luaL_argcheck(lua, length >= 0 && length <= tensor->shape.size[dimension], 3,
                  "the dimension is shorter");
    return give(lua, op_narrow(engine_of(lua), tensor, dimension, length));
}

static int select_one(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    luaL_argcheck(lua, tensor->shape.size[dimension] > 0, 2, "the dimension is empty");
    return give(lua, op_select(engine_of(lua), tensor, dimension));
}

static int transpose(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    int first = dimension_at(lua, 2, tensor->shape.dims);
    int second = dimension_at(lua, 3, tensor->shape.dims);
    return give(lua, op_transpose(engine_of(lua), tensor, first, second));
}

static int contiguous(lua_State *lua)
{
    return give(lua, op_contiguous(engine_of(lua), check_tensor(lua, 1)));
}

static int unbind(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct tensor *tensor = check_tensor(lua, 1);
    int dimension = lua_isnoneornil(lua, 2) ? 0 : dimension_at(lua, 2, tensor->shape.dims);
    luaL_argcheck(lua, tensor->shape.dims > 0 && tensor->shape.size[dimension] <= MAX_JOINED, 1,
                  "too many parts, or none");
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

typedef struct tensor *(*joiner)(struct engine *engine, struct tensor *const *parts, size_t count,
                                 int dimension);

static size_t count_parts(lua_State *lua, const struct list *list)
{
    lua_Unsigned count = list ? list_count(list) : lua_rawlen(lua, 1);
    luaL_argcheck(lua, count > 0 && count <= MAX_JOINED, 1, "a list of tensors expected");
    return (size_t)count;
}

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

/* cat(parts, dimension): `parts` is a table or a list; all are checked before memory is taken. */
static int join(lua_State *lua, joiner operation, int more)
{
    struct engine *engine = engine_of(lua);
    struct list *list = NULL;
    if (!lua_istable(lua, 1)) {
        list = (struct list *)check_thing(lua, 1, &list_class);
    }
    size_t count = count_parts(lua, list);
    for (size_t i = 0; i < count; i++) {
        part_at(lua, list, i);
    }
    int dims = part_at(lua, list, 0)->shape.dims + more;
    int dimension = lua_isnoneornil(lua, 2) ? 0 : dimension_at(lua, 2, dims);
    struct tensor **parts = host_take(engine, count * sizeof(struct tensor *));
    for (size_t i = 0; i < count; i++) {
        parts[i] = part_at(lua, list, i);
    }
    struct tensor *result = operation(engine, parts, count, dimension);
    host_give(engine, parts);
    return give(lua, result);
}

static int cat(lua_State *lua)
{
    return join(lua, op_cat, 0);
}

static int stack(lua_State *lua)
{
    return join(lua, op_stack, 1);
}

/* --- in place ---------------------------------------------------------------------------- */

static struct tensor *changeable(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, 1);
    if (tensor->requires_grad && engine_of(lua)->grad_enabled) {
        luaL_error(lua, "a leaf that requires a gradient cannot be changed in place");
    }
    return tensor;
}

/* Gives the tensor the node of `result`; the value of the expression is the tensor. */
static int changed(lua_State *lua, struct tensor *tensor, struct tensor *result)
{
    struct engine *engine = engine_of(lua);
    tensor_rebase(engine, tensor, result);
    tensor_drop(engine, result);
    return push_result(lua, thing_keep(tensor_thing(tensor)));
}

static int multiply_in_place(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct tensor *tensor = changeable(lua);
    struct tensor *result = lua_isnumber(lua, 2)
                                ? op_scale_in_place(engine, tensor)
                                : op_mul(engine, tensor, check_tensor(lua, 2), true);
    return changed(lua, tensor, result);
}

static int relu_in_place(lua_State *lua)
{
    struct tensor *tensor = changeable(lua);
    return changed(lua, tensor, op_relu(engine_of(lua), tensor, true));
}

/* zero_(), fill_(0): new values, no memory and no graph. */
static int overwrite(lua_State *lua)
{
    struct tensor *tensor = changeable(lua);
    return push_result(lua, thing_keep(tensor_thing(tensor)));
}

static int fill(lua_State *lua)
{
    luaL_checknumber(lua, 2);
    return overwrite(lua);
}

/* Whether a shape fits another as it is, or broadcast. */
static bool can_be_copied(const struct shape *from, const struct shape *to)
{
    int lead = to->dims - from->dims;
    for (int i = 0; lead >= 0 && i < from->dims; i++) {
        if (from->size[i] != 1 && from->size[i] != to->size[lead + i]) {
            return false;
        }
    }
    return lead >= 0;
}

static int copy(lua_State *lua)
{
    const struct shape *to = &changeable(lua)->shape, *from = &check_tensor(lua, 2)->shape;
    char left[128], right[128];
    if (!can_be_copied(from, to)) {
        return luaL_error(lua, "copy_: shape %s does not fit into %s", shape_text(from, left),
                          shape_text(to, right));
    }
    return overwrite(lua);
}

/* --- types ------------------------------------------------------------------------------- */

static int cast_to(lua_State *lua, enum dtype dtype)
{
    return give(lua, op_cast(engine_of(lua), check_tensor(lua, 1), dtype));
}

static int to_type(lua_State *lua)
{
    enum dtype dtype = DTYPE_FLOAT32;
    luaL_argcheck(lua, dtype_parse(luaL_checkstring(lua, 2), &dtype), 2,
                  "no such type; \"float32\", \"bfloat16\", \"float16\" ...");
    return cast_to(lua, dtype);
}

static int to_half(lua_State *lua)
{
    return cast_to(lua, DTYPE_FLOAT16);
}

static int to_float(lua_State *lua)
{
    return cast_to(lua, DTYPE_FLOAT32);
}

/* --- streams ----------------------------------------------------------------------------- */

static int on_block(lua_State *lua, uint8_t op, uint32_t stream, uint64_t duration_ns)
{
    const struct storage *storage = check_tensor(lua, 1)->storage;
    gmd_request request = {
        .op = (uint8_t)op, .block = storage->block, .stream = stream, .duration_ns = duration_ns};
    if (storage->has_block) {
        engine_request(engine_of(lua), &request);
    }
    return 0;
}

static int record_stream(lua_State *lua)
{
    struct stream *stream = (struct stream *)check_thing(lua, 2, &stream_class);
    return on_block(lua, GMD_OP_RECORD, stream->number, 0);
}

/* t:use(ns): a kernel on the current stream reads and writes the tensor for so long. */
static int use(lua_State *lua)
{
    lua_Integer duration_ns = luaL_optinteger(lua, 2, 1000);
    luaL_argcheck(lua, duration_ns > 0, 2, "nanoseconds expected");
    return on_block(lua, GMD_OP_USE, engine_of(lua)->stream, (uint64_t)duration_ns);
}

const struct script_function tensor_operations[] = {
    {"tanh", tanh_of, FUNCTION_CALL},        {"sigmoid", sigmoid_of, FUNCTION_CALL},
    {"exp", exp_of, FUNCTION_CALL},          {"softmax", softmax_of, FUNCTION_CALL},
    {"narrow", narrow, FUNCTION_CALL},       {"select", select_one, FUNCTION_CALL},
    {"transpose", transpose, FUNCTION_CALL}, {"contiguous", contiguous, FUNCTION_CALL},
    {"unbind", unbind, FUNCTION_CALL},       {"mul_", multiply_in_place, FUNCTION_CALL},
    {"relu_", relu_in_place, FUNCTION_CALL}, {"zero_", overwrite, FUNCTION_CALL},
    {"fill_", fill, FUNCTION_CALL},          {"copy_", copy, FUNCTION_CALL},
    {"to", to_type, FUNCTION_CALL},          {"half", to_half, FUNCTION_CALL},
    {"float", to_float, FUNCTION_CALL},      {"record_stream", record_stream, FUNCTION_STATEMENT},
    {"use", use, FUNCTION_STATEMENT},        {NULL, NULL, FUNCTION_CALL},
};

/* --- blocks of code ---------------------------------------------------------------------- */

/* autocast("bfloat16", function() ... end) */
static int autocast(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    enum dtype dtype = DTYPE_BFLOAT16;
    luaL_argcheck(lua, dtype_parse(luaL_checkstring(lua, 1), &dtype), 1,
                  "\"bfloat16\" or \"float16\" expected");
    luaL_argcheck(lua, dtype_bytes(dtype) == 2, 1, "\"bfloat16\" or \"float16\" expected");
    luaL_checktype(lua, 2, LUA_TFUNCTION);
    autocast_begin(engine, dtype);
    int status = binding_call_block(lua, 2);
    autocast_end(engine);
    return status == LUA_OK ? 0 : lua_error(lua);
}

/* checkpoint(module, x) */
static int checkpoint(lua_State *lua)
{
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    return give(lua, checkpoint_apply(engine_of(lua), module, check_tensor(lua, 2)));
}

static const struct script_function functions[] = {
    {"tanh", tanh_of, FUNCTION_CALL},      {"sigmoid", sigmoid_of, FUNCTION_CALL},
    {"exp", exp_of, FUNCTION_CALL},        {"gelu", gelu_of, FUNCTION_CALL},
    {"silu", silu_of, FUNCTION_CALL},      {"softmax", softmax_of, FUNCTION_CALL},
    {"bmm", bmm_of, FUNCTION_CALL},        {"matmul", bmm_of, FUNCTION_CALL},
    {"cat", cat, FUNCTION_CALL},           {"stack", stack, FUNCTION_CALL},
    {"autocast", autocast, FUNCTION_CALL}, {"checkpoint", checkpoint, FUNCTION_CALL},
    {NULL, NULL, FUNCTION_CALL},
};

void operation_functions(lua_State *lua)
{
    binding_functions(lua, functions);
}
