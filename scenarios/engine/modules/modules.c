/* modules.c - what all modules share. */
#include "gmd_module.h"

#define MAX_DEPTH 64
#define MAX_PARTS 65536 /* the largest of torchvision's models have some 1000 */

static void destroy_module(struct engine *engine, struct thing *thing)
{
    struct module *module = (struct module *)thing;
    /* dicts, from the first item on: _parameters, _buffers, _modules, in nn.Module's order */
    for (size_t i = 0; i < module->parameter_count; i++) {
        tensor_drop(engine, module->parameters[i]);
    }
    for (size_t i = 0; i < module->buffer_count; i++) {
        tensor_drop(engine, module->buffers[i]);
    }
    for (size_t i = 0; i < module->child_count; i++) {
        module_drop(engine, module->children[i]);
    }
    storage_drop(engine, module->flat);
    if (module->close) {
        module->close(engine, module);
    }
    host_give(engine, module->children);
    host_give(engine, module->parameters);
    host_give(engine, module->buffers);
}

const struct thing_class module_class = {.name = "module", .destroy = destroy_module};

struct module *module_new(struct engine *engine, const char *name, forward_fn forward)
{
    struct module *module = host_take(engine, sizeof *module);
    thing_init(engine, &module->thing, &module_class);
    module->name = name;
    module->forward = forward;
    module->training = true;
    module->takes = 1;
    return module;
}

struct tensor *module_parameter(struct engine *engine, struct module *module, struct shape shape)
{
    size_t count = module->parameter_count;
    module->parameters =
        host_take_more(engine, module->parameters, (count + 1) * sizeof(struct tensor *));
    struct tensor *parameter = tensor_new(engine, &shape, DTYPE_FLOAT32);
    parameter->requires_grad = true;
    storage_mark(parameter->storage, GMD_PARAMETER);
    module->parameters[module->parameter_count++] = parameter;
    return parameter;
}

void module_buffer(struct engine *engine, struct module *module, struct shape shape,
                   enum dtype dtype)
{
    size_t count = module->buffer_count;
    module->buffers =
        host_take_more(engine, module->buffers, (count + 1) * sizeof(struct tensor *));
    struct tensor *buffer = tensor_new(engine, &shape, dtype);
    storage_mark(buffer->storage, GMD_PARAMETER);
    module->buffers[module->buffer_count++] = buffer;
}

/* A walk over the parts of a module visits each as often as a pass reaches it. */
typedef struct parts_walk {
    const struct module *sought;
    int parts, height;
    bool is_found;
} parts_walk;

/* module_child() limits the depth to MAX_DEPTH; it does not know how often parts are shared, so a
 * walk ends after MAX_PARTS. */
static void walk_parts(parts_walk *walk, const struct module *module, int height)
{
    walk->is_found |= module == walk->sought;
    walk->height = height > walk->height ? height : walk->height;
    walk->parts++;
    for (size_t i = 0; i < module->child_count; i++) {
        if (walk->is_found || walk->parts > MAX_PARTS) {
            return;
        }
        walk_parts(walk, module->children[i], height + 1);
    }
}

/* A module may be appended to after it has become part of others. */
static void lower(struct module *module, int level)
{
    if (module->level < level) {
        module->level = level;
        for (size_t i = 0; i < module->child_count; i++) {
            lower(module->children[i], level + 1);
        }
    }
}

/* Passes, sizes and lists of parameters recurse into the parts and rely on a finite depth. */
static bool can_be_child(struct engine *engine, const struct module *module,
                         const struct module *child)
{
    parts_walk walk = {.sought = module};
    walk_parts(&walk, child, 1);
    if (walk.is_found) {
        engine_misuse(engine, "a module cannot be part of itself");
    } else if (walk.parts > MAX_PARTS) {
        engine_misuse(engine, "a module that is part of another can have %d parts", MAX_PARTS);
    } else if (module->level + walk.height > MAX_DEPTH) {
        engine_misuse(engine, "modules are nested more than %d deep", MAX_DEPTH);
    } else {
        return true;
    }
    return false;
}

void module_child(struct engine *engine, struct module *module, struct module *child)
{
    size_t count = module->child_count;
    if (!can_be_child(engine, module, child)) {
        module_drop(engine, child);
        return;
    }
    lower(child, module->level + 1);
    module->children =
        host_take_more(engine, module->children, (count + 1) * sizeof(struct module *));
    module->children[module->child_count++] = child;
}

/* Each module once, however often it is part of others; as torch's named_modules(). */
static void walk_once(struct module *module, uint64_t walk,
                      void (*visit)(struct module *module, void *context), void *context)
{
    if (module->walk == walk) {
        return;
    }
    module->walk = walk;
    visit(module, context);
    for (size_t i = 0; i < module->child_count; i++) {
        walk_once(module->children[i], walk, visit, context);
    }
}

void module_each(struct engine *engine, struct module *module,
                 void (*visit)(struct module *module, void *context), void *context)
{
    walk_once(module, ++engine->walks, visit, context);
}

typedef struct tensor_visit {
    struct engine *engine;
    visit_tensor_fn visit;
    void *context;
} tensor_visit;

static void visit_buffers(struct module *module, void *context)
{
    const tensor_visit *each = context;
    for (size_t i = 0; i < module->buffer_count; i++) {
        each->visit(each->engine, module->buffers[i], each->context);
    }
}

/* A parameter that several modules share is visited once in each walk. */
static bool is_first_visit(const struct module *module, struct tensor *parameter)
{
    bool is_first = parameter->walk != module->walk;
    parameter->walk = module->walk;
    return is_first;
}

static void visit_parameters(struct module *module, void *context)
{
    const tensor_visit *each = context;
    for (size_t i = 0; i < module->parameter_count; i++) {
        if (is_first_visit(module, module->parameters[i])) {
            each->visit(each->engine, module->parameters[i], each->context);
        }
    }
}

void module_parameters(struct engine *engine, struct module *module, visit_tensor_fn visit,
                       void *context)
{
    tensor_visit each = {engine, visit, context};
    walk_once(module, ++engine->walks, visit_parameters, &each);
}

void module_buffers(struct engine *engine, struct module *module, visit_tensor_fn visit,
                    void *context)
{
    tensor_visit each = {engine, visit, context};
    walk_once(module, ++engine->walks, visit_buffers, &each);
}

static void measure_one(struct module *module, void *context)
{
    struct module_sizes *sizes = context;
    for (size_t i = 0; i < module->parameter_count; i++) {
        struct tensor *parameter = module->parameters[i];
        if (is_first_visit(module, parameter)) {
            sizes->parameters += tensor_bytes(parameter);
            sizes->gradients += parameter->grad ? tensor_bytes(parameter) : 0;
        }
    }
    for (size_t i = 0; i < module->buffer_count; i++) {
        sizes->buffers += tensor_bytes(module->buffers[i]);
    }
}

struct module_sizes module_measure(struct engine *engine, struct module *module)
{
    struct module_sizes sizes = {0};
    walk_once(module, ++engine->walks, measure_one, &sizes);
    return sizes;
}

/* Layers have a weight and, behind it, a bias; what consists of others has neither of its own. */
static struct tensor **own_parameter(struct module *module, bool is_bias)
{
    bool is_layer = module->child_count == 0 && module->parameter_count <= 2 && !module->flat;
    size_t index = is_bias ? 1 : 0;
    return is_layer && index < module->parameter_count ? &module->parameters[index] : NULL;
}

struct tensor *module_own_parameter(struct module *module, bool is_bias)
{
    struct tensor **own = own_parameter(module, is_bias);
    return own ? *own : NULL;
}

bool module_share_parameter(struct engine *engine, struct module *module, bool is_bias,
                            struct tensor *parameter)
{
    char left[128], right[128];
    struct tensor **own = own_parameter(module, is_bias);
    if (!own) {
        return false;
    }
    struct tensor *before = *own;
    if (module->sharded || before->is_shard || parameter->is_shard) {
        engine_misuse(engine, "parameters are shared before fully_shard()");
    } else if (parameter->grad_fn || !shape_is(&before->shape, &parameter->shape) ||
               before->dtype != parameter->dtype) {
        engine_misuse(engine, "a parameter %s of %s cannot become %s of %s%s",
                      shape_text(&before->shape, left), dtype_name(before->dtype),
                      shape_text(&parameter->shape, right), dtype_name(parameter->dtype),
                      parameter->grad_fn ? ", which has a graph" : "");
    } else {
        *own = tensor_keep(parameter);
        storage_mark(parameter->storage, GMD_PARAMETER);
        tensor_drop(engine, before);
    }
    return true;
}

void module_train(struct module *module, bool training)
{
    module->training = training;
    for (size_t i = 0; i < module->child_count; i++) {
        module_train(module->children[i], training);
    }
}

struct tensor *module_apply(struct engine *engine, struct module *module, struct tensor *input)
{
    struct tensor *results[MODULE_MAX_RESULTS] = {NULL};
    if (!input) {
        return NULL;
    }
    int count = module->forward(engine, module, &input, 1, results);
    for (int i = 1; i < count; i++) {
        tensor_drop(engine, results[i]); /* the states of an LSTM inside a Sequential */
    }
    return count > 0 ? results[0] : NULL;
}

struct tensor *module_pass(struct engine *engine, struct module *module, struct tensor *input)
{
    struct tensor *result = module_apply(engine, module, input);
    tensor_drop(engine, input);
    return result;
}
