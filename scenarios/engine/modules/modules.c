/* modules.c - what all modules share, and the single layers. */
#include "gmd_module.h"

#define MAX_DEPTH 64
#define MAX_PARTS 65536 /* the largest of torchvision's models have some 1000 */

static void destroy_module(gmd_engine *engine, gmd_thing *thing)
{
    gmd_module *module = (gmd_module *)thing;
    for (size_t i = 0; i < module->child_count; i++) {
        gmd_module_drop(engine, module->children[i]);
    }
    for (size_t i = 0; i < module->parameter_count; i++) {
        gmd_tensor_drop(engine, module->parameters[i]);
    }
    for (size_t i = 0; i < module->buffer_count; i++) {
        gmd_tensor_drop(engine, module->buffers[i]);
    }
    gmd_storage_drop(engine, module->flat);
    gmd_give(engine, module->children);
    gmd_give(engine, module->parameters);
    gmd_give(engine, module->buffers);
}

const gmd_thing_class gmd_module_class = {.name = "module", .destroy = destroy_module};

gmd_module *gmd_module_new(gmd_engine *engine, const char *name, gmd_forward forward)
{
    gmd_module *module = gmd_take(engine, sizeof *module);
    gmd_thing_init(engine, &module->thing, &gmd_module_class);
    module->name = name;
    module->forward = forward;
    module->training = true;
    module->takes = 1;
    return module;
}

gmd_tensor *gmd_module_parameter(gmd_engine *engine, gmd_module *module, gmd_shape shape)
{
    size_t count = module->parameter_count;
    module->parameters =
        gmd_take_more(engine, module->parameters, (count + 1) * sizeof(gmd_tensor *));
    gmd_tensor *parameter = gmd_tensor_new(engine, &shape, GMD_FLOAT32);
    parameter->requires_grad = true;
    gmd_storage_is(parameter->storage, GMD_PARAMETER);
    module->parameters[module->parameter_count++] = parameter;
    return parameter;
}

static void add_buffer(gmd_engine *engine, gmd_module *module, gmd_shape shape, gmd_dtype dtype)
{
    size_t count = module->buffer_count;
    module->buffers = gmd_take_more(engine, module->buffers, (count + 1) * sizeof(gmd_tensor *));
    gmd_tensor *buffer = gmd_tensor_new(engine, &shape, dtype);
    gmd_storage_is(buffer->storage, GMD_PARAMETER);
    module->buffers[module->buffer_count++] = buffer;
}

/* What lies below a module, each part as often as a pass reaches it. */
typedef struct parts_walk {
    const gmd_module *sought;
    int parts, height;
    bool is_found;
} parts_walk;

/* No deeper than MAX_DEPTH, which gmd_module_child() keeps; how often parts are shared, it does not
 * know, so a walk ends at MAX_PARTS. */
static void walk_parts(parts_walk *walk, const gmd_module *module, int height)
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
static void lower(gmd_module *module, int level)
{
    if (module->level < level) {
        module->level = level;
        for (size_t i = 0; i < module->child_count; i++) {
            lower(module->children[i], level + 1);
        }
    }
}

/* Passes, sizes and parameters follow the parts down and trust that there is an end. */
static bool can_be_child(gmd_engine *engine, const gmd_module *module, const gmd_module *child)
{
    parts_walk walk = {.sought = module};
    walk_parts(&walk, child, 1);
    if (walk.is_found) {
        gmd_misuse(engine, "a module cannot be part of itself");
    } else if (walk.parts > MAX_PARTS) {
        gmd_misuse(engine, "a module that is part of another can have %d parts", MAX_PARTS);
    } else if (module->level + walk.height > MAX_DEPTH) {
        gmd_misuse(engine, "modules are nested more than %d deep", MAX_DEPTH);
    } else {
        return true;
    }
    return false;
}

void gmd_module_child(gmd_engine *engine, gmd_module *module, gmd_module *child)
{
    size_t count = module->child_count;
    if (!can_be_child(engine, module, child)) {
        gmd_module_drop(engine, child);
        return;
    }
    lower(child, module->level + 1);
    module->children = gmd_take_more(engine, module->children, (count + 1) * sizeof(gmd_module *));
    module->children[module->child_count++] = child;
}

/* Each module once, however often it is part of others; as torch's named_modules(). */
static void walk_once(gmd_module *module, uint64_t walk,
                      void (*visit)(gmd_module *module, void *context), void *context)
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
    gmd_engine *engine;
    gmd_visit_parameter visit;
    void *context;
} parameter_visit;

static void visit_parameters(gmd_module *module, void *context)
{
    const parameter_visit *each = context;
    for (size_t i = 0; i < module->parameter_count; i++) {
        each->visit(each->engine, module->parameters[i], each->context);
    }
}

void gmd_module_parameters(gmd_engine *engine, gmd_module *module, gmd_visit_parameter visit,
                           void *context)
{
    parameter_visit each = {engine, visit, context};
    walk_once(module, ++engine->walks, visit_parameters, &each);
}

static void measure_one(gmd_module *module, void *context)
{
    gmd_module_sizes *sizes = context;
    for (size_t i = 0; i < module->parameter_count; i++) {
        const gmd_tensor *parameter = module->parameters[i];
        sizes->parameters += gmd_tensor_bytes(parameter);
        sizes->gradients += parameter->grad ? gmd_tensor_bytes(parameter) : 0;
    }
    for (size_t i = 0; i < module->buffer_count; i++) {
        sizes->buffers += gmd_tensor_bytes(module->buffers[i]);
    }
}

gmd_module_sizes gmd_module_measure(gmd_engine *engine, gmd_module *module)
{
    gmd_module_sizes sizes = {0};
    walk_once(module, ++engine->walks, measure_one, &sizes);
    return sizes;
}

void gmd_module_train(gmd_module *module, bool training)
{
    module->training = training;
    for (size_t i = 0; i < module->child_count; i++) {
        gmd_module_train(module->children[i], training);
    }
}

gmd_tensor *gmd_module_apply(gmd_engine *engine, gmd_module *module, gmd_tensor *input)
{
    gmd_tensor *results[GMD_MAX_RESULTS] = {NULL};
    if (!input) {
        return NULL;
    }
    int count = module->forward(engine, module, &input, 1, results);
    for (int i = 1; i < count; i++) {
        gmd_tensor_drop(engine, results[i]); /* of an LSTM inside a Sequential: its states */
    }
    return count > 0 ? results[0] : NULL;
}

gmd_tensor *gmd_module_pass(gmd_engine *engine, gmd_module *module, gmd_tensor *input)
{
    gmd_tensor *result = gmd_module_apply(engine, module, input);
    gmd_tensor_drop(engine, input);
    return result;
}

static int one(gmd_tensor *result, gmd_tensor *results[GMD_MAX_RESULTS])
{
    results[0] = result;
    return result ? 1 : 0;
}

/* A layer's weight or bias; NULL where it has none. */
static gmd_tensor *parameter(const gmd_module *module, size_t index)
{
    return index < module->parameter_count ? module->parameters[index] : NULL;
}

/* --- Conv2d ------------------------------------------------------------------------------ */

static int conv2d_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                          gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    return one(
        gmd_op_conv2d(engine, inputs[0], parameter(module, 0), parameter(module, 1), module->conv),
        results);
}

gmd_module *gmd_nn_conv2d(gmd_engine *engine, int64_t in, int64_t out, gmd_conv conv, bool bias)
{
    gmd_module *module = gmd_module_new(engine, "Conv2d", conv2d_forward);
    module->conv = conv;
    gmd_module_parameter(engine, module, (gmd_shape){4, {out, in, conv.kernel, conv.kernel}});
    if (bias) {
        gmd_module_parameter(engine, module, (gmd_shape){1, {out}});
    }
    return module;
}

/* --- BatchNorm2d: weight, bias, running mean and variance, and a counter of batches ------ */

static int batch_norm_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs,
                              int count, gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    return one(gmd_op_batch_norm(engine, inputs[0], parameter(module, 0), parameter(module, 1),
                                 module->training),
               results);
}

gmd_module *gmd_nn_batch_norm(gmd_engine *engine, int64_t channels)
{
    gmd_module *module = gmd_module_new(engine, "BatchNorm2d", batch_norm_forward);
    gmd_shape shape = {1, {channels}};
    gmd_module_parameter(engine, module, shape);
    gmd_module_parameter(engine, module, shape);
    add_buffer(engine, module, shape, GMD_FLOAT32);
    add_buffer(engine, module, shape, GMD_FLOAT32);
    add_buffer(engine, module, (gmd_shape){0, {0}}, GMD_INT64);
    return module;
}

/* --- layers without weights -------------------------------------------------------------- */

static int relu_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                        gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    return one(gmd_op_relu(engine, inputs[0], module->in_place), results);
}

gmd_module *gmd_nn_relu(gmd_engine *engine, bool in_place)
{
    gmd_module *module = gmd_module_new(engine, "ReLU", relu_forward);
    module->in_place = in_place;
    return module;
}

static int dropout_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                           gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    return one(module->training ? gmd_op_dropout(engine, inputs[0]) : gmd_tensor_keep(inputs[0]),
               results);
}

gmd_module *gmd_nn_dropout(gmd_engine *engine)
{
    return gmd_module_new(engine, "Dropout", dropout_forward);
}

static int activation_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs,
                              int count, gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    return one(gmd_op_activation(engine, module->activation, inputs[0]), results);
}

gmd_module *gmd_nn_activation(gmd_engine *engine, gmd_activation kind)
{
    gmd_module *module = gmd_module_new(engine, "Activation", activation_forward);
    module->activation = kind;
    return module;
}

static int softmax_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                           gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)module;
    (void)count;
    return one(gmd_op_softmax(engine, inputs[0]), results);
}

gmd_module *gmd_nn_softmax(gmd_engine *engine)
{
    return gmd_module_new(engine, "Softmax", softmax_forward);
}

static int max_pool_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                            gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    return one(gmd_op_max_pool2d(engine, inputs[0], module->conv), results);
}

gmd_module *gmd_nn_max_pool(gmd_engine *engine, gmd_conv pool)
{
    gmd_module *module = gmd_module_new(engine, "MaxPool2d", max_pool_forward);
    module->conv = pool;
    return module;
}

static int avg_pool_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                            gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)module;
    (void)count;
    return one(gmd_op_global_avg_pool(engine, inputs[0]), results);
}

gmd_module *gmd_nn_avg_pool(gmd_engine *engine)
{
    return gmd_module_new(engine, "AdaptiveAvgPool2d", avg_pool_forward);
}

static int flatten_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                           gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)module;
    (void)count;
    gmd_shape shape = {2, {1, 1}};
    if (inputs[0]->shape.dims > 0) {
        gmd_shape rest = inputs[0]->shape;
        shape.size[0] = rest.size[0];
        rest.size[0] = 1;
        shape.size[1] = (int64_t)gmd_shape_count(&rest);
    }
    return one(gmd_op_reshape(engine, inputs[0], &shape), results);
}

gmd_module *gmd_nn_flatten(gmd_engine *engine)
{
    return gmd_module_new(engine, "Flatten", flatten_forward);
}

/* --- Linear, LayerNorm, Embedding -------------------------------------------------------- */

static int linear_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                          gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    return one(gmd_op_linear(engine, inputs[0], parameter(module, 0), parameter(module, 1)),
               results);
}

gmd_module *gmd_nn_linear(gmd_engine *engine, int64_t in, int64_t out, bool bias)
{
    gmd_module *module = gmd_module_new(engine, "Linear", linear_forward);
    gmd_module_parameter(engine, module, (gmd_shape){2, {out, in}});
    if (bias) {
        gmd_module_parameter(engine, module, (gmd_shape){1, {out}});
    }
    return module;
}

static int layer_norm_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs,
                              int count, gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    return one(gmd_op_layer_norm(engine, inputs[0], parameter(module, 0), parameter(module, 1)),
               results);
}

gmd_module *gmd_nn_layer_norm(gmd_engine *engine, int64_t features)
{
    gmd_module *module = gmd_module_new(engine, "LayerNorm", layer_norm_forward);
    gmd_module_parameter(engine, module, (gmd_shape){1, {features}});
    gmd_module_parameter(engine, module, (gmd_shape){1, {features}});
    return module;
}

static int embedding_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                             gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    return one(gmd_op_embedding(engine, inputs[0], parameter(module, 0)), results);
}

gmd_module *gmd_nn_embedding(gmd_engine *engine, int64_t entries, int64_t features)
{
    gmd_module *module = gmd_module_new(engine, "Embedding", embedding_forward);
    gmd_module_parameter(engine, module, (gmd_shape){2, {entries, features}});
    return module;
}
