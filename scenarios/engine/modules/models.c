/* models.c - modules made of modules: Sequential, residual blocks, ResNet-50. */
#include "gmd_module.h"

static int given(struct tensor *result, struct tensor *results[MODULE_MAX_RESULTS])
{
    results[0] = result;
    return result ? 1 : 0;
}

static int sequential_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                              int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    struct tensor *x = tensor_keep(inputs[0]);
    for (size_t i = 0; i < module->child_count; i++) {
        x = module_pass(engine, module->children[i], x);
    }
    return given(x, results);
}

bool module_is_sequential(const struct module *module)
{
    return module->forward == sequential_forward;
}

struct module *nn_sequential(struct engine *engine, struct module **children, size_t count)
{
    struct module *module = module_new(engine, "Sequential", sequential_forward);
    for (size_t i = 0; i < count; i++) {
        module_child(engine, module, children[i]);
    }
    return module;
}

static int residual_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                            int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    struct tensor *body = module_apply(engine, module->children[0], inputs[0]);
    struct tensor *sum = op_add(engine, inputs[0], body, false);
    tensor_drop(engine, body);
    return given(sum, results);
}

struct module *nn_residual(struct engine *engine, struct module *body)
{
    struct module *module = module_new(engine, "Residual", residual_forward);
    module_child(engine, module, body);
    return module;
}

/* --- ResNet-50 (torchvision's variant: the stride is in the 3x3 convolution) ------------- */

enum { CONV1, BN1, CONV2, BN2, CONV3, BN3, DOWNSAMPLE, BOTTLENECK_PARTS };

static struct tensor *rectified(struct engine *engine, struct tensor *x)
{
    struct tensor *result = op_relu(engine, x, true);
    tensor_drop(engine, x);
    return result;
}

/* A convolution and its normalisation; as a variable in Python does, `input` lives until both are
 * done. Takes it over. */
static struct tensor *conv_bn(struct engine *engine, struct module *const part[2],
                              struct tensor *input)
{
    struct tensor *out = module_apply(engine, part[0], input);
    out = module_pass(engine, part[1], out);
    tensor_drop(engine, input);
    return out;
}

/* `out += identity` and every ReLU are in place: a block keeps only what its convolutions and
 * normalisations wrote. */
static int bottleneck_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                              int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    struct module **part = module->children;
    struct tensor *identity = tensor_keep(inputs[0]);
    struct tensor *out = rectified(engine, conv_bn(engine, &part[CONV1], tensor_keep(inputs[0])));
    out = rectified(engine, conv_bn(engine, &part[CONV2], out));
    out = conv_bn(engine, &part[CONV3], out);
    if (module->child_count > DOWNSAMPLE) {
        identity = module_pass(engine, part[DOWNSAMPLE], identity);
    }
    struct tensor *sum = op_add(engine, out, identity, true);
    tensor_drop(engine, out);
    sum = rectified(engine, sum);
    tensor_drop(engine, identity);
    return given(sum, results);
}

static void add_conv_bn(struct engine *engine, struct module *module, int64_t in, int64_t out,
                        struct conv conv)
{
    module_child(engine, module, nn_conv2d(engine, in, out, conv, false));
    module_child(engine, module, nn_batch_norm(engine, out, true));
}

static struct module *bottleneck(struct engine *engine, int64_t in, int64_t width, int64_t stride,
                                 bool downsample)
{
    struct module *module = module_new(engine, "Bottleneck", bottleneck_forward);
    add_conv_bn(engine, module, in, width, conv_square(1, 1, 0));
    add_conv_bn(engine, module, width, width, conv_square(3, stride, 1));
    add_conv_bn(engine, module, width, 4 * width, conv_square(1, 1, 0));
    if (downsample) {
        struct module *shortcut = module_new(engine, "Sequential", sequential_forward);
        add_conv_bn(engine, shortcut, in, 4 * width, conv_square(1, stride, 0));
        module_child(engine, module, shortcut);
    }
    return module;
}

static struct module *stage(struct engine *engine, int64_t in, int64_t width, int64_t blocks,
                            int64_t stride)
{
    struct module *module = module_new(engine, "Sequential", sequential_forward);
    module_child(engine, module, bottleneck(engine, in, width, stride, true));
    for (int64_t i = 1; i < blocks; i++) {
        module_child(engine, module, bottleneck(engine, 4 * width, width, 1, false));
    }
    return module;
}

struct module *nn_resnet50(struct engine *engine, int64_t classes)
{
    struct module *model = module_new(engine, "ResNet", sequential_forward);
    add_conv_bn(engine, model, 3, 64, conv_square(7, 2, 3));
    module_child(engine, model, nn_relu(engine, true));
    module_child(engine, model, nn_max_pool(engine, conv_square(3, 2, 1)));
    module_child(engine, model, stage(engine, 64, 64, 3, 1));
    module_child(engine, model, stage(engine, 256, 128, 4, 2));
    module_child(engine, model, stage(engine, 512, 256, 6, 2));
    module_child(engine, model, stage(engine, 1024, 512, 3, 2));
    module_child(engine, model, nn_adaptive_avg_pool(engine, (int64_t[2]){1, 1}));
    module_child(engine, model, nn_flatten(engine, 2, -1));
    module_child(engine, model, nn_linear(engine, 2048, classes, true));
    return model;
}
