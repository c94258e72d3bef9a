/* models.c - modules made of modules: Sequential, residual blocks, ResNet-50. */
#include "gmd_module.h"

static int given(gmd_tensor *result, gmd_tensor *results[GMD_MAX_RESULTS])
{
    results[0] = result;
    return result ? 1 : 0;
}

static int sequential_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs,
                              int count, gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    gmd_tensor *x = gmd_tensor_keep(inputs[0]);
    for (size_t i = 0; i < module->child_count; i++) {
        x = gmd_module_pass(engine, module->children[i], x);
    }
    return given(x, results);
}

bool gmd_module_is_sequential(const gmd_module *module)
{
    return module->forward == sequential_forward;
}

gmd_module *gmd_nn_sequential(gmd_engine *engine, gmd_module **children, size_t count)
{
    gmd_module *module = gmd_module_new(engine, "Sequential", sequential_forward);
    for (size_t i = 0; i < count; i++) {
        gmd_module_child(engine, module, children[i]);
    }
    return module;
}

static int residual_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                            gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    gmd_tensor *body = gmd_module_apply(engine, module->children[0], inputs[0]);
    gmd_tensor *sum = gmd_op_add(engine, inputs[0], body, false);
    gmd_tensor_drop(engine, body);
    return given(sum, results);
}

gmd_module *gmd_nn_residual(gmd_engine *engine, gmd_module *body)
{
    gmd_module *module = gmd_module_new(engine, "Residual", residual_forward);
    gmd_module_child(engine, module, body);
    return module;
}

/* --- ResNet-50 (torchvision's variant: the stride is in the 3x3 convolution) ------------- */

enum { CONV1, BN1, CONV2, BN2, CONV3, BN3, DOWNSAMPLE, BOTTLENECK_PARTS };

static gmd_tensor *rectified(gmd_engine *engine, gmd_tensor *x)
{
    gmd_tensor *result = gmd_op_relu(engine, x, true);
    gmd_tensor_drop(engine, x);
    return result;
}

/* `out += identity` happens in place, and so does every ReLU: of each block only what the
 * convolutions and normalisations wrote is left. */
static int bottleneck_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs,
                              int count, gmd_tensor *results[GMD_MAX_RESULTS])
{
    (void)count;
    gmd_module **part = module->children;
    gmd_tensor *identity = gmd_tensor_keep(inputs[0]);
    gmd_tensor *out = gmd_module_apply(engine, part[CONV1], inputs[0]);
    out = rectified(engine, gmd_module_pass(engine, part[BN1], out));
    out = gmd_module_pass(engine, part[CONV2], out);
    out = rectified(engine, gmd_module_pass(engine, part[BN2], out));
    out = gmd_module_pass(engine, part[CONV3], out);
    out = gmd_module_pass(engine, part[BN3], out);
    if (module->child_count > DOWNSAMPLE) {
        identity = gmd_module_pass(engine, part[DOWNSAMPLE], identity);
    }
    gmd_tensor *sum = gmd_op_add(engine, out, identity, true);
    gmd_tensor_drop(engine, out);
    sum = rectified(engine, sum);
    gmd_tensor_drop(engine, identity);
    return given(sum, results);
}

static void add_conv_bn(gmd_engine *engine, gmd_module *module, int64_t in, int64_t out,
                        gmd_conv conv)
{
    gmd_module_child(engine, module, gmd_nn_conv2d(engine, in, out, conv, false));
    gmd_module_child(engine, module, gmd_nn_batch_norm(engine, out));
}

static gmd_module *bottleneck(gmd_engine *engine, int64_t in, int64_t width, int64_t stride,
                              bool downsample)
{
    gmd_module *module = gmd_module_new(engine, "Bottleneck", bottleneck_forward);
    add_conv_bn(engine, module, in, width, (gmd_conv){1, 1, 0});
    add_conv_bn(engine, module, width, width, (gmd_conv){3, stride, 1});
    add_conv_bn(engine, module, width, 4 * width, (gmd_conv){1, 1, 0});
    if (downsample) {
        gmd_module *shortcut = gmd_module_new(engine, "Sequential", sequential_forward);
        add_conv_bn(engine, shortcut, in, 4 * width, (gmd_conv){1, stride, 0});
        gmd_module_child(engine, module, shortcut);
    }
    return module;
}

static gmd_module *stage(gmd_engine *engine, int64_t in, int64_t width, int64_t blocks,
                         int64_t stride)
{
    gmd_module *module = gmd_module_new(engine, "Sequential", sequential_forward);
    gmd_module_child(engine, module, bottleneck(engine, in, width, stride, true));
    for (int64_t i = 1; i < blocks; i++) {
        gmd_module_child(engine, module, bottleneck(engine, 4 * width, width, 1, false));
    }
    return module;
}

gmd_module *gmd_nn_resnet50(gmd_engine *engine, int64_t classes)
{
    gmd_module *model = gmd_module_new(engine, "ResNet", sequential_forward);
    add_conv_bn(engine, model, 3, 64, (gmd_conv){7, 2, 3});
    gmd_module_child(engine, model, gmd_nn_relu(engine, true));
    gmd_module_child(engine, model, gmd_nn_max_pool(engine, (gmd_conv){3, 2, 1}));
    gmd_module_child(engine, model, stage(engine, 64, 64, 3, 1));
    gmd_module_child(engine, model, stage(engine, 256, 128, 4, 2));
    gmd_module_child(engine, model, stage(engine, 512, 256, 6, 2));
    gmd_module_child(engine, model, stage(engine, 1024, 512, 3, 2));
    gmd_module_child(engine, model, gmd_nn_avg_pool(engine));
    gmd_module_child(engine, model, gmd_nn_flatten(engine));
    gmd_module_child(engine, model, gmd_nn_linear(engine, 2048, classes, true));
    return model;
}
