/* methods.c - methods of tensors that are no operations, and of modules. */
#include "gmd_capture.h"
#include "gmd_object.h"
#include "library_parts.h"

/* --- tensors ----------------------------------------------------------------------------- */

/* backward() from a tensor of any shape, with a gradient that the script gives. */
static int backward_with(lua_State *lua, struct tensor *tensor, struct tensor *gradient,
                         bool retain)
{
    if (!tensor->grad_fn) {
        return luaL_error(lua, "backward() on a tensor that has no graph");
    }
    if (shape_count(&tensor->shape) != shape_count(&gradient->shape)) {
        return luaL_error(lua, "the gradient must have the shape of the tensor");
    }
    tensor_backward_from(engine_of(lua), tensor, tensor_keep(gradient), retain);
    return 0;
}

enum { SELF = 1, GRADIENT, RETAIN_GRAPH };

static int backward(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, SELF);
    bool retain = lua_toboolean(lua, RETAIN_GRAPH);
    if (!lua_isnil(lua, GRADIENT)) {
        return backward_with(lua, tensor, check_tensor(lua, GRADIENT), retain);
    }
    tensor_backward(engine_of(lua), tensor, retain);
    return 0;
}

static int require_grad(lua_State *lua)
{
    struct tensor *tensor = check_tensor(lua, SELF);
    bool required = lua_toboolean(lua, 2);
    if (required && !dtype_is_floating(tensor->dtype)) {
        return luaL_error(lua, "only floating types can require gradients, and this is %s",
                          dtype_name(tensor->dtype));
    }
    if (tensor->grad_fn && !required) {
        return luaL_error(lua, "only a leaf can be told to require no gradient; this tensor came "
                               "out of an operation: detach() it");
    }
    tensor->requires_grad = required && !tensor->grad_fn;
    return push_result(lua, thing_keep(tensor_thing(tensor)));
}

/* The number goes to the host; nothing is allocated on the device. */
static int item(lua_State *lua)
{
    char text[128];
    const struct tensor *tensor = check_tensor(lua, SELF);
    if (shape_count(&tensor->shape) != 1) {
        return luaL_error(lua, "item() is of one number, this tensor is %s",
                          shape_text(&tensor->shape, text));
    }
    if (!capture_allows(engine_of(lua), "item")) {
        raise_failure(lua);
    }
    lua_pushnumber(lua, 0);
    return 1;
}

static int size(lua_State *lua)
{
    const struct tensor *tensor = check_tensor(lua, SELF);
    lua_pushinteger(lua, tensor->shape.size[dimension_at(lua, 2, tensor->shape.dims)]);
    return 1;
}

static int dim(lua_State *lua)
{
    lua_pushinteger(lua, check_tensor(lua, SELF)->shape.dims);
    return 1;
}

static int numel(lua_State *lua)
{
    lua_pushinteger(lua, (lua_Integer)shape_count(&check_tensor(lua, 1)->shape));
    return 1;
}

static int nbytes(lua_State *lua)
{
    lua_pushinteger(lua, (lua_Integer)tensor_bytes(check_tensor(lua, SELF)));
    return 1;
}

const struct script_function tensor_methods[] = {
    {"backward", backward, FUNCTION_STATEMENT, STYLE_CALL,
     TAKES(MAY_TAKE("gradient", TENSOR, "nil"), OPTION("retain_graph", TRUTH, "false"))},
    {"requires_grad_", require_grad, FUNCTION_CALL, STYLE_CALL,
     TAKES(MAY_TAKE("required", TRUTH, "true"))},
    {"item", item, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"size", size, FUNCTION_QUERY, STYLE_CALL, TAKES(NEEDS("dimension", DIMENSION))},
    {"dim", dim, FUNCTION_QUERY, STYLE_CALL, TAKES_NOTHING},
    {"numel", numel, FUNCTION_QUERY, STYLE_CALL, TAKES_NOTHING},
    {"nbytes", nbytes, FUNCTION_QUERY, STYLE_CALL, TAKES_NOTHING},
    END_OF_FUNCTIONS,
};

/* --- modules ----------------------------------------------------------------------------- */

static int call_module_mode(lua_State *lua, bool training)
{
    struct thing *thing = check_thing(lua, 1, &module_class);
    module_train((struct module *)thing, training);
    return 0;
}

static int call_module_train(lua_State *lua)
{
    return call_module_mode(lua, lua_toboolean(lua, 2));
}

static int call_module_eval(lua_State *lua)
{
    return call_module_mode(lua, false);
}

static void append_parameter(struct engine *engine, struct tensor *parameter, void *context)
{
    list_append(engine, context, tensor_thing(parameter));
}

static int call_module_parameters(lua_State *lua)
{
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    struct list *list = list_new(engine_of(lua));
    module_parameters(engine_of(lua), module, append_parameter, list);
    return push_result(lua, (struct thing *)list);
}

/* A module is called with the tensors that it takes; absent ones at the end may be nil. */
int call_module(lua_State *lua)
{
    struct engine *engine = engine_of(lua);
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    struct tensor *inputs[MODULE_MAX_RESULTS], *results[MODULE_MAX_RESULTS] = {NULL};
    int count = 0;
    int last = lua_gettop(lua);
    while (last > 1 && lua_isnil(lua, last)) {
        last--;
    }
    for (int i = 2; i <= last; i++) {
        if (count == MODULE_MAX_RESULTS) {
            return luaL_error(lua, "%s takes at most %d tensors", module->name, MODULE_MAX_RESULTS);
        }
        inputs[count++] = check_tensor(lua, i);
    }
    if (count == 0) {
        return luaL_error(lua, "%s: a tensor expected, got nothing", module->name);
    }
    if (count > module->takes) {
        return luaL_error(lua, "%s takes %d tensor%s, and here are %d", module->name, module->takes,
                          module->takes > 1 ? "s" : "", count);
    }
    int made = module->forward(engine, module, inputs, count, results);
    if (made == 0) {
        raise_failure(lua);
    }
    for (int i = 0; i < made; i++) {
        push_result(lua, tensor_thing(results[i]));
    }
    return made;
}

static void clear_gradient(struct engine *engine, struct tensor *parameter, void *context)
{
    struct tensor *grad = parameter->grad;
    (void)context;
    parameter->grad = NULL;
    tensor_drop(engine, grad);
}

static int zero_grad(lua_State *lua)
{
    if (lua_toboolean(lua, 2)) {
        module_parameters(engine_of(lua), (struct module *)check_thing(lua, 1, &module_class),
                          clear_gradient, NULL);
    }
    return 0;
}

/* m:nbytes(): bytes of parameters, of the gradients that exist, and of buffers. */
static int call_module_nbytes(lua_State *lua)
{
    struct thing *thing = check_thing(lua, 1, &module_class);
    struct module_sizes sizes = module_measure(engine_of(lua), (struct module *)thing);
    lua_pushinteger(lua, (lua_Integer)sizes.parameters);
    lua_pushinteger(lua, (lua_Integer)sizes.gradients);
    lua_pushinteger(lua, (lua_Integer)sizes.buffers);
    return 3;
}

/* A Sequential is filled in a loop. */
static int call_module_append(lua_State *lua)
{
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    struct module *child = (struct module *)check_thing(lua, 2, &module_class);
    luaL_argcheck(lua, module_is_sequential(module), 1, "only a Sequential can be appended to");
    module_child(engine_of(lua), module, module_keep(child));
    return 0;
}

static void set_required(struct engine *engine, struct tensor *parameter, void *context)
{
    (void)engine;
    parameter->requires_grad = *(const bool *)context;
}

/* Frozen parameters: no gradient is computed for them, and what only their gradients need is not
 * saved. */
static int call_module_require_grad(lua_State *lua)
{
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    bool required = lua_toboolean(lua, 2);
    module_parameters(engine_of(lua), module, set_required, &required);
    return push_result(lua, thing_keep(&module->thing));
}

static int call_module_channels_last(lua_State *lua)
{
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    module_to_channels_last(engine_of(lua), module);
    return push_result(lua, thing_keep(&module->thing));
}

static int convert_module(lua_State *lua, enum dtype dtype)
{
    struct module *module = (struct module *)check_thing(lua, 1, &module_class);
    module_to(engine_of(lua), module, dtype);
    raise_failure(lua);
    return push_result(lua, thing_keep(&module->thing));
}

static int call_module_to(lua_State *lua)
{
    return convert_module(lua, dtype_at(lua, 2, DTYPE_FLOAT32));
}

static int call_module_half(lua_State *lua)
{
    return convert_module(lua, DTYPE_FLOAT16);
}

static int call_module_float(lua_State *lua)
{
    return convert_module(lua, DTYPE_FLOAT32);
}

const struct script_function module_methods[] = {
    {"to_channels_last", call_module_channels_last, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"to", call_module_to, FUNCTION_CALL, STYLE_CALL, TAKES(NEEDS("dtype", DTYPE))},
    {"half", call_module_half, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"float", call_module_float, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"append", call_module_append, FUNCTION_STATEMENT, STYLE_CALL, TAKES(NEEDS("module", MODULE))},
    {"zero_grad", zero_grad, FUNCTION_STATEMENT, STYLE_CALL,
     TAKES(OPTION("set_to_none", TRUTH, "true"))},
    {"nbytes", call_module_nbytes, FUNCTION_QUERY, STYLE_CALL, TAKES_NOTHING},
    {"train", call_module_train, FUNCTION_CALL, STYLE_CALL, TAKES(MAY_TAKE("mode", TRUTH, "true"))},
    {"eval", call_module_eval, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"parameters", call_module_parameters, FUNCTION_CALL, STYLE_CALL, TAKES_NOTHING},
    {"requires_grad_", call_module_require_grad, FUNCTION_CALL, STYLE_CALL,
     TAKES(MAY_TAKE("required", TRUTH, "true"))},
    END_OF_FUNCTIONS,
};
