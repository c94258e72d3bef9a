/* modules.c - what all modules share, and the single layers. */
#include "gmd_module.h"
#include "gmd_reducer.h"

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
    reducer_close(engine, module->reducer);
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

static void add_buffer(struct engine *engine, struct module *module, struct shape shape,
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

typedef struct parameter_visit {
    struct engine *engine;
    visit_parameter_fn visit;
    void *context;
} parameter_visit;

static void visit_parameters(struct module *module, void *context)
{
    const parameter_visit *each = context;
    for (size_t i = 0; i < module->parameter_count; i++) {
        each->visit(each->engine, module->parameters[i], each->context);
    }
}

void module_parameters(struct engine *engine, struct module *module, visit_parameter_fn visit,
                       void *context)
{
    parameter_visit each = {engine, visit, context};
    walk_once(module, ++engine->walks, visit_parameters, &each);
}

static void measure_one(struct module *module, void *context)
{
    struct module_sizes *sizes = context;
    for (size_t i = 0; i < module->parameter_count; i++) {
        const struct tensor *parameter = module->parameters[i];
        sizes->parameters += tensor_bytes(parameter);
        sizes->gradients += parameter->grad ? tensor_bytes(parameter) : 0;
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

static int one(struct tensor *result, struct tensor *results[MODULE_MAX_RESULTS])
{
    results[0] = result;
    return result ? 1 : 0;
}

/* A layer's weight or bias; NULL where it has none. */
static struct tensor *parameter(const struct module *module, size_t index)
{
    return index < module->parameter_count ? module->parameters[index] : NULL;
}

/* --- Conv2d ------------------------------------------------------------------------------ */

static int conv2d_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                          int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(
        op_conv2d(engine, inputs[0], parameter(module, 0), parameter(module, 1), module->conv),
        results);
}

struct module *nn_conv2d(struct engine *engine, int64_t in, int64_t out, struct conv conv,
                         bool bias)
{
    struct module *module = module_new(engine, "Conv2d", conv2d_forward);
    module->conv = conv;
    module_parameter(engine, module, (struct shape){4, {out, in, conv.kernel, conv.kernel}});
    if (bias) {
        module_parameter(engine, module, (struct shape){1, {out}});
    }
    return module;
}

/* --- BatchNorm2d: weight, bias, running mean and variance, and a counter of batches ------ */

static int batch_norm_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                              int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_batch_norm(engine, inputs[0], parameter(module, 0), parameter(module, 1),
                             module->training),
               results);
}

struct module *nn_batch_norm(struct engine *engine, int64_t channels)
{
    struct module *module = module_new(engine, "BatchNorm2d", batch_norm_forward);
    struct shape shape = {1, {channels}};
    module_parameter(engine, module, shape);
    module_parameter(engine, module, shape);
    add_buffer(engine, module, shape, DTYPE_FLOAT32);
    add_buffer(engine, module, shape, DTYPE_FLOAT32);
    add_buffer(engine, module, (struct shape){0, {0}}, DTYPE_INT64);
    return module;
}

/* --- layers without weights -------------------------------------------------------------- */

static int relu_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                        int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_relu(engine, inputs[0], module->in_place), results);
}

struct module *nn_relu(struct engine *engine, bool in_place)
{
    struct module *module = module_new(engine, "ReLU", relu_forward);
    module->in_place = in_place;
    return module;
}

static int dropout_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                           int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(module->training ? op_dropout(engine, inputs[0]) : tensor_keep(inputs[0]), results);
}

struct module *nn_dropout(struct engine *engine)
{
    return module_new(engine, "Dropout", dropout_forward);
}

static int activation_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                              int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_activation(engine, module->activation, inputs[0]), results);
}

struct module *nn_activation(struct engine *engine, enum activation kind)
{
    struct module *module = module_new(engine, "Activation", activation_forward);
    module->activation = kind;
    return module;
}

static int softmax_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                           int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)module;
    (void)count;
    return one(op_softmax(engine, inputs[0]), results);
}

struct module *nn_softmax(struct engine *engine)
{
    return module_new(engine, "Softmax", softmax_forward);
}

static int max_pool_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                            int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_max_pool2d(engine, inputs[0], module->conv), results);
}

struct module *nn_max_pool(struct engine *engine, struct conv pool)
{
    struct module *module = module_new(engine, "MaxPool2d", max_pool_forward);
    module->conv = pool;
    return module;
}

static int avg_pool_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                            int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)module;
    (void)count;
    return one(op_global_avg_pool(engine, inputs[0]), results);
}

struct module *nn_avg_pool(struct engine *engine)
{
    return module_new(engine, "AdaptiveAvgPool2d", avg_pool_forward);
}

static int flatten_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                           int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)module;
    (void)count;
    struct shape shape = {2, {1, 1}};
    if (inputs[0]->shape.dims > 0) {
        struct shape rest = inputs[0]->shape;
        shape.size[0] = rest.size[0];
        rest.size[0] = 1;
        shape.size[1] = (int64_t)shape_count(&rest);
    }
    return one(op_reshape(engine, inputs[0], &shape), results);
}

struct module *nn_flatten(struct engine *engine)
{
    return module_new(engine, "Flatten", flatten_forward);
}

/* --- Linear, LayerNorm, Embedding -------------------------------------------------------- */

static int linear_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                          int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_linear(engine, inputs[0], parameter(module, 0), parameter(module, 1)), results);
}

struct module *nn_linear(struct engine *engine, int64_t in, int64_t out, bool bias)
{
    struct module *module = module_new(engine, "Linear", linear_forward);
    module_parameter(engine, module, (struct shape){2, {out, in}});
    if (bias) {
        module_parameter(engine, module, (struct shape){1, {out}});
    }
    return module;
}

static int layer_norm_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                              int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_layer_norm(engine, inputs[0], parameter(module, 0), parameter(module, 1)),
               results);
}

struct module *nn_layer_norm(struct engine *engine, int64_t features)
{
    struct module *module = module_new(engine, "LayerNorm", layer_norm_forward);
    module_parameter(engine, module, (struct shape){1, {features}});
    module_parameter(engine, module, (struct shape){1, {features}});
    return module;
}

static int embedding_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                             int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_embedding(engine, inputs[0], parameter(module, 0)), results);
}

struct module *nn_embedding(struct engine *engine, int64_t entries, int64_t features)
{
    struct module *module = module_new(engine, "Embedding", embedding_forward);
    module_parameter(engine, module, (struct shape){2, {entries, features}});
    return module;
}
