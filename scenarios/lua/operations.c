/* operations.c - operations of tensors as scripts call them: activations, products, parts and
 * joins, in place, and what concerns other streams. */
#include "arguments.h"
#include "gmd_autocast.h"
#include "gmd_checkpoint.h"
#include "gmd_object.h"
#include "gmd_operations.h"
#include "library.h"
#include "stream.h"

#define MAX_JOINED 65536

static int give(lua_State *lua, gmd_tensor *tensor)
{
    if (!tensor) {
        gmd_raise_failure(lua);
    }
    return gmd_push_result(lua, gmd_thing_of(tensor));
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

static int activation(lua_State *lua, gmd_activation kind)
{
    return give(lua, gmd_op_activation(engine_of(lua), kind, gmd_check_tensor(lua, 1)));
}

static int tanh_of(lua_State *lua)
{
    return activation(lua, GMD_TANH);
}

static int sigmoid_of(lua_State *lua)
{
    return activation(lua, GMD_SIGMOID);
}

static int exp_of(lua_State *lua)
{
    return activation(lua, GMD_EXP);
}

static int gelu_of(lua_State *lua)
{
    return activation(lua, GMD_GELU);
}

static int silu_of(lua_State *lua)
{
    return activation(lua, GMD_SILU);
}

static int softmax_of(lua_State *lua)
{
    return give(lua, gmd_op_softmax(engine_of(lua), gmd_check_tensor(lua, 1)));
}

static int bmm_of(lua_State *lua)
{
    gmd_tensor *a = gmd_check_tensor(lua, 1), *b = gmd_check_tensor(lua, 2);
    return give(lua, gmd_op_bmm(engine_of(lua), a, b));
}

/* --- parts and joins --------------------------------------------------------------------- */

static int narrow(lua_State *lua)
{
    gmd_tensor *tensor = gmd_check_tensor(lua, 1);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    lua_Integer length = luaL_checkinteger(lua, 3);
    luaL_argcheck(lua, length >= 0 && length <= tensor->shape.size[dimension], 3,
                  "more than there is");
    return give(lua, gmd_op_narrow(engine_of(lua), tensor, dimension, length));
}

static int select_one(lua_State *lua)
{
    gmd_tensor *tensor = gmd_check_tensor(lua, 1);
    int dimension = dimension_at(lua, 2, tensor->shape.dims);
    luaL_argcheck(lua, tensor->shape.size[dimension] > 0, 2, "there is none to select");
    return give(lua, gmd_op_select(engine_of(lua), tensor, dimension));
}

static int transpose(lua_State *lua)
{
    gmd_tensor *tensor = gmd_check_tensor(lua, 1);
    int first = dimension_at(lua, 2, tensor->shape.dims);
    int second = dimension_at(lua, 3, tensor->shape.dims);
    return give(lua, gmd_op_transpose(engine_of(lua), tensor, first, second));
}

static int contiguous(lua_State *lua)
{
    return give(lua, gmd_op_contiguous(engine_of(lua), gmd_check_tensor(lua, 1)));
}

static int unbind(lua_State *lua)
{
    gmd_engine *engine = engine_of(lua);
    gmd_tensor *tensor = gmd_check_tensor(lua, 1);
    int dimension = lua_isnoneornil(lua, 2) ? 0 : dimension_at(lua, 2, tensor->shape.dims);
    luaL_argcheck(lua, tensor->shape.dims > 0 && tensor->shape.size[dimension] <= MAX_JOINED, 1,
                  "too many parts, or none");
    size_t count = (size_t)tensor->shape.size[dimension];
    gmd_list *list = gmd_list_new(engine);
    gmd_tensor **parts = gmd_take(engine, (count + 1) * sizeof(gmd_tensor *));
    gmd_op_unbind(engine, tensor, dimension, parts);
    for (size_t i = 0; i < count; i++) {
        gmd_list_append(engine, list, gmd_thing_of(parts[i]));
        gmd_tensor_drop(engine, parts[i]);
    }
    gmd_give(engine, parts);
    return gmd_push_result(lua, (gmd_thing *)list);
}

typedef gmd_tensor *(*joiner)(gmd_engine *engine, gmd_tensor *const *parts, size_t count,
                              int dimension);

static size_t count_parts(lua_State *lua, const gmd_list *list)
{
    lua_Unsigned count = list ? gmd_list_count(list) : lua_rawlen(lua, 1);
    luaL_argcheck(lua, count > 0 && count <= MAX_JOINED, 1, "a list of tensors expected");
    return (size_t)count;
}

static gmd_tensor *part_at(lua_State *lua, const gmd_list *list, size_t i)
{
    if (!list) {
        lua_rawgeti(lua, 1, (lua_Integer)i + 1);
        gmd_tensor *tensor = gmd_check_tensor(lua, -1);
        lua_pop(lua, 1);
        return tensor;
    }
    gmd_thing *thing = gmd_list_at(list, i);
    luaL_argcheck(lua, thing->class == &gmd_tensor_class, 1, "a list of tensors expected");
    return (gmd_tensor *)thing;
}

/* cat(parts, dimension): `parts` is a table or a list; all are checked before memory is taken. */
static int join(lua_State *lua, joiner operation, int more)
{
    gmd_engine *engine = engine_of(lua);
    gmd_list *list = NULL;
    if (!lua_istable(lua, 1)) {
        list = (gmd_list *)gmd_check_thing(lua, 1, &gmd_list_class);
    }
    size_t count = count_parts(lua, list);
    for (size_t i = 0; i < count; i++) {
        part_at(lua, list, i);
    }
    int dims = part_at(lua, list, 0)->shape.dims + more;
    int dimension = lua_isnoneornil(lua, 2) ? 0 : dimension_at(lua, 2, dims);
    gmd_tensor **parts = gmd_take(engine, count * sizeof(gmd_tensor *));
    for (size_t i = 0; i < count; i++) {
        parts[i] = part_at(lua, list, i);
    }
    gmd_tensor *result = operation(engine, parts, count, dimension);
    gmd_give(engine, parts);
    return give(lua, result);
}

static int cat(lua_State *lua)
{
    return join(lua, gmd_op_cat, 0);
}

static int stack(lua_State *lua)
{
    return join(lua, gmd_op_stack, 1);
}

/* --- in place ---------------------------------------------------------------------------- */

static gmd_tensor *changeable(lua_State *lua)
{
    gmd_tensor *tensor = gmd_check_tensor(lua, 1);
    if (tensor->requires_grad && engine_of(lua)->grad_enabled) {
        luaL_error(lua, "a leaf that requires a gradient cannot be changed in place");
    }
    return tensor;
}

/* The tensor is now what `result` is in the graph; the expression's value is the tensor. */
static int changed(lua_State *lua, gmd_tensor *tensor, gmd_tensor *result)
{
    gmd_engine *engine = engine_of(lua);
    gmd_tensor_rebase(engine, tensor, result);
    gmd_tensor_drop(engine, result);
    return gmd_push_result(lua, gmd_thing_keep(gmd_thing_of(tensor)));
}

static int multiply_in_place(lua_State *lua)
{
    gmd_engine *engine = engine_of(lua);
    gmd_tensor *tensor = changeable(lua);
    gmd_tensor *result = lua_isnumber(lua, 2)
                             ? gmd_op_scale_in_place(engine, tensor)
                             : gmd_op_mul(engine, tensor, gmd_check_tensor(lua, 2), true);
    return changed(lua, tensor, result);
}

static int relu_in_place(lua_State *lua)
{
    gmd_tensor *tensor = changeable(lua);
    return changed(lua, tensor, gmd_op_relu(engine_of(lua), tensor, true));
}

/* zero_(), fill_(0): new values, no memory and no graph. */
static int overwrite(lua_State *lua)
{
    gmd_tensor *tensor = changeable(lua);
    return gmd_push_result(lua, gmd_thing_keep(gmd_thing_of(tensor)));
}

static int fill(lua_State *lua)
{
    luaL_checknumber(lua, 2);
    return overwrite(lua);
}

/* What is copied fits the tensor as it is, or after it was broadcast. */
static bool can_be_copied(const gmd_shape *from, const gmd_shape *to)
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
    const gmd_shape *to = &changeable(lua)->shape, *from = &gmd_check_tensor(lua, 2)->shape;
    char left[128], right[128];
    if (!can_be_copied(from, to)) {
        return luaL_error(lua, "copy_: shape %s does not fit into %s", gmd_shape_text(from, left),
                          gmd_shape_text(to, right));
    }
    return overwrite(lua);
}

/* --- types ------------------------------------------------------------------------------- */

static int cast_to(lua_State *lua, gmd_dtype dtype)
{
    return give(lua, gmd_op_cast(engine_of(lua), gmd_check_tensor(lua, 1), dtype));
}

static int to_type(lua_State *lua)
{
    gmd_dtype dtype = GMD_FLOAT32;
    luaL_argcheck(lua, gmd_dtype_parse(luaL_checkstring(lua, 2), &dtype), 2,
                  "no such type; \"float32\", \"bfloat16\", \"float16\" ...");
    return cast_to(lua, dtype);
}

static int to_half(lua_State *lua)
{
    return cast_to(lua, GMD_FLOAT16);
}

static int to_float(lua_State *lua)
{
    return cast_to(lua, GMD_FLOAT32);
}

/* --- streams ----------------------------------------------------------------------------- */

static int on_block(lua_State *lua, gmd_op op, uint32_t stream, uint64_t duration_ns)
{
    const gmd_storage *storage = gmd_check_tensor(lua, 1)->storage;
    gmd_request request = {
        .op = op, .block = storage->block, .stream = stream, .duration_ns = duration_ns};
    if (storage->has_block) {
        gmd_ask(engine_of(lua), &request);
    }
    return 0;
}

static int record_stream(lua_State *lua)
{
    gmd_stream *stream = (gmd_stream *)gmd_check_thing(lua, 2, &gmd_stream_class);
    return on_block(lua, GMD_OP_RECORD, stream->number, 0);
}

/* t:use(ns): a kernel on the current stream that reads and writes it for so long. */
static int use(lua_State *lua)
{
    lua_Integer duration_ns = luaL_optinteger(lua, 2, 1000);
    luaL_argcheck(lua, duration_ns > 0, 2, "nanoseconds expected");
    return on_block(lua, GMD_OP_USE, engine_of(lua)->stream, (uint64_t)duration_ns);
}

const gmd_function tensor_operations[] = {
    {"tanh", tanh_of, GMD_CALL},        {"sigmoid", sigmoid_of, GMD_CALL},
    {"exp", exp_of, GMD_CALL},          {"softmax", softmax_of, GMD_CALL},
    {"narrow", narrow, GMD_CALL},       {"select", select_one, GMD_CALL},
    {"transpose", transpose, GMD_CALL}, {"contiguous", contiguous, GMD_CALL},
    {"unbind", unbind, GMD_CALL},       {"mul_", multiply_in_place, GMD_CALL},
    {"relu_", relu_in_place, GMD_CALL}, {"zero_", overwrite, GMD_CALL},
    {"fill_", fill, GMD_CALL},          {"copy_", copy, GMD_CALL},
    {"to", to_type, GMD_CALL},          {"half", to_half, GMD_CALL},
    {"float", to_float, GMD_CALL},      {"record_stream", record_stream, GMD_STATEMENT},
    {"use", use, GMD_STATEMENT},        {NULL, NULL, GMD_CALL},
};

/* --- blocks of code ---------------------------------------------------------------------- */

/* autocast("bfloat16", function() ... end) */
static int autocast(lua_State *lua)
{
    gmd_engine *engine = engine_of(lua);
    gmd_dtype dtype = GMD_BFLOAT16;
    luaL_argcheck(lua, gmd_dtype_parse(luaL_checkstring(lua, 1), &dtype), 1,
                  "\"bfloat16\" or \"float16\" expected");
    luaL_argcheck(lua, gmd_dtype_bytes(dtype) == 2, 1, "\"bfloat16\" or \"float16\" expected");
    luaL_checktype(lua, 2, LUA_TFUNCTION);
    gmd_autocast_begin(engine, dtype);
    int status = gmd_lua_call_block(lua, 2);
    gmd_autocast_end(engine);
    return status == LUA_OK ? 0 : lua_error(lua);
}

/* checkpoint(module, x) */
static int checkpoint(lua_State *lua)
{
    gmd_module *module = (gmd_module *)gmd_check_thing(lua, 1, &gmd_module_class);
    return give(lua, gmd_checkpoint(engine_of(lua), module, gmd_check_tensor(lua, 2)));
}

static const gmd_function functions[] = {
    {"tanh", tanh_of, GMD_CALL},      {"sigmoid", sigmoid_of, GMD_CALL},
    {"exp", exp_of, GMD_CALL},        {"gelu", gelu_of, GMD_CALL},
    {"silu", silu_of, GMD_CALL},      {"softmax", softmax_of, GMD_CALL},
    {"bmm", bmm_of, GMD_CALL},        {"matmul", bmm_of, GMD_CALL},
    {"cat", cat, GMD_CALL},           {"stack", stack, GMD_CALL},
    {"autocast", autocast, GMD_CALL}, {"checkpoint", checkpoint, GMD_CALL},
    {NULL, NULL, GMD_CALL},
};

void operation_functions(lua_State *lua)
{
    gmd_binding_functions(lua, functions);
}
