/* changes.c - operations in place: t:mul_(2). */
#include "gmd_more_operations.h"
#include "library_parts.h"

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

/* A change in place cannot make the tensor larger. */
static void check_fit(lua_State *lua, const char *what, const struct tensor *to)
{
    char left[128], right[128];
    const struct shape *from = &check_tensor(lua, 2)->shape;
    if (!shape_expands(from, &to->shape)) {
        luaL_error(lua, "%s: shape %s does not fit into %s", what, shape_text(from, left),
                   shape_text(&to->shape, right));
    }
}

static int add_in_place(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct tensor *tensor = changeable(lua);
    if (lua_type(lua, 2) == LUA_TNUMBER) {
        return changed(lua, tensor, op_shift(engine, tensor, true));
    }
    check_fit(lua, "add_", tensor);
    return changed(lua, tensor, op_add(engine, tensor, check_tensor(lua, 2), true));
}

static int multiply_in_place(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct tensor *tensor = changeable(lua);
    if (lua_type(lua, 2) == LUA_TNUMBER) {
        return changed(lua, tensor, op_scale_in_place(engine, tensor));
    }
    check_fit(lua, "mul_", tensor);
    return changed(lua, tensor, op_mul(engine, tensor, check_tensor(lua, 2), true));
}

static int relu_in_place(lua_State *lua)
{
    struct tensor *tensor = changeable(lua);
    return changed(lua, tensor, op_relu(engine_of(lua), tensor, true));
}

static int masked_fill_in_place(lua_State *lua)
{
    struct tensor *tensor = changeable(lua);
    check_fit(lua, "masked_fill_", tensor);
    return changed(lua, tensor, op_masked_fill(engine_of(lua), tensor, check_tensor(lua, 2), true));
}

/* zero_(), fill_(0): new values, no memory and no graph. */
static int overwrite(lua_State *lua)
{
    struct tensor *tensor = changeable(lua);
    return push_result(lua, thing_keep(tensor_thing(tensor)));
}

static int copy(lua_State *lua)
{
    check_fit(lua, "copy_", changeable(lua));
    return overwrite(lua);
}

/* index_copy_(dimension, indices, from): items with these indices get new values; no memory. Into a
 * graph it would need a derivative. */
static int index_copy(lua_State *lua)
{
    char left[128], right[128];
    const struct tensor *tensor = changeable(lua), *indices = check_tensor(lua, 3);
    struct tensor *from = check_tensor(lua, 4);
    struct shape shape = tensor->shape;
    shape.size[dimension_at(lua, 2, shape.dims)] = (int64_t)shape_count(&indices->shape);
    if (indices->dtype != DTYPE_INT64 || indices->shape.dims > 1) {
        return luaL_error(lua, "index_copy_: indices of int64 and of one dimension expected");
    }
    if (!shape_is(&shape, &from->shape) || tensor->dtype != from->dtype) {
        return luaL_error(lua, "index_copy_: %s of the tensor's type expected, got %s of %s",
                          shape_text(&shape, left), shape_text(&from->shape, right),
                          dtype_name(from->dtype));
    }
    if (tensor_tracked(engine_of(lua), tensor) || tensor_tracked(engine_of(lua), from)) {
        return luaL_error(lua, "index_copy_: not where a gradient is needed: use no_grad()");
    }
    return overwrite(lua);
}

const struct script_function tensor_changes[] = {
    {"add_", add_in_place, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("other", OPERAND))},
    {"mul_", multiply_in_place, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("other", OPERAND))},
    {"masked_fill_", masked_fill_in_place, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("mask", TENSOR),
           {.name = "value", .value = VALUE_NUMBER, .is_checked_only = true})},
    {"relu_", relu_in_place, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"zero_", overwrite, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"fill_", overwrite, FUNCTION_CALL, STYLE_CALL,
     TAKES({.name = "value", .value = VALUE_NUMBER, .is_checked_only = true})},
    {"copy_", copy, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("from", TENSOR))},
    {"index_copy_", index_copy, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("dimension", DIMENSION), NEEDS("indices", TENSOR), NEEDS("from", TENSOR))},
    END_OF_FUNCTIONS,
};
