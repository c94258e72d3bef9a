/* module_dtype.c - a whole model in another type: Module.to(dtype), half(), float(). */
#include "gmd_sharded.h"

typedef struct conversion {
    struct engine *engine;
    enum dtype dtype;
} conversion;

/* `tensor` stays the same thing, with new memory, as `parameter.data = ...` makes it. */
static void convert(const conversion *to, struct tensor *tensor, gmd_category category)
{
    if (!tensor || !dtype_is_floating(tensor->dtype) || tensor->dtype == to->dtype) {
        return;
    }
    struct storage *before = tensor->storage;
    uint64_t bytes = shape_count(&tensor->shape) * dtype_bytes(to->dtype);
    tensor->storage = storage_new(to->engine, bytes);
    storage_mark(tensor->storage, category);
    tensor->dtype = to->dtype;
    storage_drop(to->engine, before);
}

static void convert_parameter(struct engine *engine, struct tensor *parameter, void *context)
{
    (void)engine;
    convert(context, parameter, GMD_PARAMETER);
    convert(context, parameter->grad, GMD_GRADIENT);
}

/* A module's own parameters and buffers, after those of its parts, as Module._apply() goes. */
static void convert_module(conversion *to, struct module *module)
{
    for (size_t i = 0; i < module->child_count; i++) {
        convert_module(to, module->children[i]);
    }
    for (size_t i = 0; i < module->parameter_count; i++) {
        convert_parameter(to->engine, module->parameters[i], to);
    }
    for (size_t i = 0; i < module->buffer_count; i++) {
        convert(to, module->buffers[i], GMD_PARAMETER);
    }
}

static bool is_recurrent(const struct module *module)
{
    bool found = module->flat != NULL;
    for (size_t i = 0; !found && i < module->child_count; i++) {
        found = is_recurrent(module->children[i]);
    }
    return found;
}

void module_to(struct engine *engine, struct module *module, enum dtype dtype)
{
    conversion to = {engine, dtype};
    if (!dtype_is_floating(dtype)) {
        engine_misuse(engine, "to: a module's type is a floating one, not %s", dtype_name(dtype));
    } else if (sharded_within(engine, module)) {
        engine_misuse(engine, "to: the module is sharded: convert it before fully_shard()");
    } else if (is_recurrent(module)) {
        engine_misuse(engine, "to: what an LSTM or GRU takes in other types than float32 is not "
                              "known; autocast() converts products around it");
    } else {
        convert_module(&to, module);
    }
}
