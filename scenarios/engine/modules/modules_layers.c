/* modules_layers.c - the single layers. */
#include "gmd_module.h"

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

/* --- convolutions ------------------------------------------------------------------------ */

static int conv2d_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                          int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(
        op_conv2d(engine, inputs[0], parameter(module, 0), parameter(module, 1), module->conv),
        results);
}

static struct module *conv_module(struct engine *engine, const char *name, forward_fn forward,
                                  struct shape weight, struct conv conv, bool bias)
{
    struct module *module = module_new(engine, name, forward);
    module->conv = conv;
    module_parameter(engine, module, weight);
    if (bias) {
        module_parameter(engine, module, (struct shape){1, {weight.size[0]}});
    }
    return module;
}

struct module *nn_conv2d(struct engine *engine, int64_t in, int64_t out, struct conv conv,
                         bool bias)
{
    struct shape weight = {4, {out, in / conv.groups, conv.kernel[0], conv.kernel[1]}};
    return conv_module(engine, "Conv2d", conv2d_forward, weight, conv, bias);
}

/* torch sees input and weight as images of height 1. */
static int conv1d_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                          int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    char text[128];
    (void)count;
    if (inputs[0]->shape.dims != 3) {
        engine_misuse(engine, "Conv1d takes [batch, channels, length], the input is %s",
                      shape_text(&inputs[0]->shape, text));
        return 0;
    }
    struct tensor *image = op_unsqueeze(engine, inputs[0], 2);
    struct tensor *weight = op_unsqueeze(engine, parameter(module, 0), 2);
    struct tensor *rows = op_conv2d(engine, image, weight, parameter(module, 1), module->conv);
    struct tensor *result = op_squeeze(engine, rows, 1u << 2);
    tensor_drop(engine, rows);
    tensor_drop(engine, weight);
    tensor_drop(engine, image);
    return one(result, results);
}

struct module *nn_conv1d(struct engine *engine, int64_t in, int64_t out, struct conv conv,
                         bool bias)
{
    struct shape weight = {3, {out, in / conv.groups, conv.kernel[1]}};
    return conv_module(engine, "Conv1d", conv1d_forward, weight, conv, bias);
}

/* --- batches: weight, bias, running mean and variance, and a counter of batches ---------- */

static int batch_norm_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                              int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    char text[128];
    int dims = inputs[0]->shape.dims;
    (void)count;
    if (module->of_images ? dims != 4 : dims != 2 && dims != 3) {
        engine_misuse(engine, "%s takes %s, the input is %s", module->name,
                      module->of_images ? "[batch, channels, height, width]"
                                        : "[batch, channels] or [batch, channels, length]",
                      shape_text(&inputs[0]->shape, text));
        return 0;
    }
    return one(op_batch_norm(engine, inputs[0], parameter(module, 0), parameter(module, 1),
                             module->training),
               results);
}

struct module *nn_batch_norm(struct engine *engine, int64_t channels, bool of_images)
{
    const char *name = of_images ? "BatchNorm2d" : "BatchNorm1d";
    struct module *module = module_new(engine, name, batch_norm_forward);
    struct shape shape = {1, {channels}};
    module->of_images = of_images;
    module_parameter(engine, module, shape);
    module_parameter(engine, module, shape);
    module_buffer(engine, module, shape, DTYPE_FLOAT32);
    module_buffer(engine, module, shape, DTYPE_FLOAT32);
    module_buffer(engine, module, (struct shape){0, {0}}, DTYPE_INT64);
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
    return one(op_dropout(engine, inputs[0], module->training ? module->p : 0), results);
}

struct module *nn_dropout(struct engine *engine, double p)
{
    struct module *module = module_new(engine, "Dropout", dropout_forward);
    module->p = p;
    return module;
}

static int leaky_relu_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                              int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(module->in_place ? op_leaky_relu_in_place(engine, inputs[0])
                                : op_activation(engine, ACTIVATION_LEAKY_RELU, inputs[0]),
               results);
}

struct module *nn_leaky_relu(struct engine *engine, bool in_place)
{
    struct module *module = module_new(engine, "LeakyReLU", leaky_relu_forward);
    module->in_place = in_place;
    return module;
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

/* A dimension as scripts count them, as the engine does; false: the tensor has no such dimension.
 */
static bool find_dimension(struct engine *engine, const struct module *module,
                           const struct tensor *input, int64_t counted, int *dimension)
{
    char text[128];
    int64_t dims = input->shape.dims, from_one = counted < 0 ? counted + dims + 1 : counted;
    *dimension = (int)from_one - 1;
    if (from_one >= 1 && from_one <= dims) {
        return true;
    }
    engine_misuse(engine, "%s: no dimension %lld in %s (they count from 1; -1 is the last)",
                  module->name, (long long)counted, shape_text(&input->shape, text));
    return false;
}

static int softmax_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                           int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    int dimension;
    (void)count;
    if (!find_dimension(engine, module, inputs[0], module->size[0], &dimension)) {
        return 0;
    }
    return one(op_softmax(engine, inputs[0]), results);
}

struct module *nn_softmax(struct engine *engine, int64_t dimension)
{
    struct module *module = module_new(engine, "Softmax", softmax_forward);
    module->size[0] = dimension;
    return module;
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
    (void)count;
    return one(op_avg_pool2d(engine, inputs[0], module->conv), results);
}

struct module *nn_avg_pool(struct engine *engine, struct conv pool)
{
    struct module *module = module_new(engine, "AvgPool2d", avg_pool_forward);
    module->conv = pool;
    return module;
}

static int adaptive_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                            int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_adaptive_avg_pool2d(engine, inputs[0], module->size), results);
}

struct module *nn_adaptive_avg_pool(struct engine *engine, const int64_t size[2])
{
    struct module *module = module_new(engine, "AdaptiveAvgPool2d", adaptive_forward);
    module->size[0] = size[0];
    module->size[1] = size[1];
    return module;
}

static int upsample_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                            int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_upsample(engine, inputs[0], module->upsample), results);
}

struct module *nn_upsample(struct engine *engine, struct upsample to)
{
    struct module *module = module_new(engine, "Upsample", upsample_forward);
    module->upsample = to;
    return module;
}

/* The dimensions from the first to the last become one. */
static int flatten_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                           int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    int first, last;
    const struct shape *from = &inputs[0]->shape;
    (void)count;
    if (!find_dimension(engine, module, inputs[0], module->size[0], &first) ||
        !find_dimension(engine, module, inputs[0], module->size[1], &last)) {
        return 0;
    }
    if (first > last) {
        engine_misuse(engine, "Flatten: the first dimension lies behind the last");
        return 0;
    }
    struct shape shape = {0, {0}};
    for (int i = 0; i < from->dims; i++) {
        if (i <= first || i > last) {
            shape.size[shape.dims++] = from->size[i];
        } else {
            int64_t *last_size = &shape.size[shape.dims - 1];
            *last_size = shape_product(*last_size, from->size[i]);
        }
    }
    return one(op_reshape_or_copy(engine, inputs[0], &shape), results);
}

struct module *nn_flatten(struct engine *engine, int64_t first, int64_t last)
{
    struct module *module = module_new(engine, "Flatten", flatten_forward);
    module->size[0] = first;
    module->size[1] = last;
    return module;
}

/* --- Linear, Embedding, and normalisation of features or groups -------------------------- */

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

static int group_norm_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                              int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_group_norm(engine, inputs[0], parameter(module, 0), parameter(module, 1),
                             module->size[0]),
               results);
}

struct module *nn_group_norm(struct engine *engine, int64_t groups, int64_t channels)
{
    struct module *module = module_new(engine, "GroupNorm", group_norm_forward);
    module->size[0] = groups;
    module_parameter(engine, module, (struct shape){1, {channels}});
    module_parameter(engine, module, (struct shape){1, {channels}});
    return module;
}

static int rms_norm_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                            int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_rms_norm(engine, inputs[0], parameter(module, 0)), results);
}

struct module *nn_rms_norm(struct engine *engine, int64_t features)
{
    struct module *module = module_new(engine, "RMSNorm", rms_norm_forward);
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
