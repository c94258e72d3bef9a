/* gradients.c - autograd.grad(output, { inputs }). */
#include "gmd_autograd.h"
#include "gmd_object.h"
#include "library_parts.h"

#define MOST_INPUTS 64

enum { OUTPUT = 1, INPUTS, GRADIENT, RETAIN_GRAPH, CREATE_GRAPH };

/* Item number `i` of a table or a list, borrowed. */
static struct tensor *input_at(lua_State *lua, lua_Integer i)
{
    struct thing *thing = lua_istable(lua, INPUTS) ? NULL : thing_at(lua, INPUTS);
    if (thing) {
        return (struct tensor *)list_at((struct list *)thing, (size_t)i - 1);
    }
    lua_rawgeti(lua, INPUTS, i);
    struct tensor *input = check_tensor(lua, -1);
    lua_pop(lua, 1);
    return input;
}

static size_t input_count(lua_State *lua)
{
    struct thing *thing = lua_istable(lua, INPUTS) ? NULL : thing_at(lua, INPUTS);
    return thing ? list_count((struct list *)thing) : (size_t)lua_rawlen(lua, INPUTS);
}

/* The gradient to begin with: the one that is given, or 1 for a number. A new reference. */
static struct tensor *first_gradient(lua_State *lua, const struct tensor *output)
{
    if (!lua_isnil(lua, GRADIENT)) {
        struct tensor *given = check_tensor(lua, GRADIENT);
        if (!shape_is(&given->shape, &output->shape)) {
            luaL_error(lua, "autograd.grad: the gradient must have the shape of the output");
        }
        return tensor_keep(given);
    }
    if (shape_count(&output->shape) != 1) {
        luaL_error(lua, "autograd.grad: the output is no single number: give a gradient");
    }
    return tensor_like(engine_of(lua), output);
}

/* A gradient for each input. */
static int grad(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct tensor *output = check_tensor(lua, OUTPUT), *inputs[MOST_INPUTS];
    struct tensor *results[MOST_INPUTS] = {NULL};
    struct gradient_request request = {.inputs = inputs,
                                       .count = input_count(lua),
                                       .retain_graph = lua_toboolean(lua, RETAIN_GRAPH),
                                       .create_graph = lua_toboolean(lua, CREATE_GRAPH)};
    if (!output->grad_fn || request.count == 0 || request.count > MOST_INPUTS) {
        return luaL_error(lua,
                          output->grad_fn ? "autograd.grad: 1 to %d inputs expected"
                                          : "autograd.grad: the output has no graph",
                          MOST_INPUTS);
    }
    for (size_t i = 0; i < request.count; i++) {
        inputs[i] = input_at(lua, (lua_Integer)i + 1);
    }
    struct tensor *first = first_gradient(lua, output);
    tensor_gradients(engine, output, tensor_keep(first), &request, results);
    tensor_drop(engine, first);
    for (size_t i = 0; i < request.count && engine_failed(engine); i++) {
        tensor_drop(engine, results[i]);
    }
    raise_failure(lua);
    luaL_checkstack(lua, (int)request.count, "autograd.grad");
    for (size_t i = 0; i < request.count; i++) {
        push_result(lua, tensor_thing(results[i]));
    }
    return (int)request.count;
}

const struct script_function autograd_functions[] = {
    {"grad", grad, FUNCTION_CALL, STYLE_CALL,
     TAKES(NEEDS("output", TENSOR), NEEDS("inputs", TENSORS), OPTION("gradient", TENSOR, "nil"),
           OPTION("retain_graph", TRUTH, "false"), OPTION("create_graph", TRUTH, "false"))},
    END_OF_FUNCTIONS,
};
