/* modules_more.c - layers that fewer models need, and models in another memory format. */
#include "gmd_layout.h"
#include "gmd_module.h"
#include "gmd_more_operations.h"

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

static int identity_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                            int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)engine;
    (void)module;
    (void)count;
    return one(tensor_keep(inputs[0]), results);
}

struct module *nn_identity(struct engine *engine)
{
    return module_new(engine, "Identity", identity_forward);
}

/* --- transposed convolutions -------------------------------------------------------------- */

static int conv_transpose_forward(struct engine *engine, struct module *module,
                                  struct tensor **inputs, int count,
                                  struct tensor *results[MODULE_MAX_RESULTS])
{
    (void)count;
    return one(op_conv_transpose2d(engine, inputs[0], parameter(module, 0), parameter(module, 1),
                                   module->conv, module->size),
               results);
}

struct module *nn_conv_transpose2d(struct engine *engine, int64_t in, int64_t out, struct conv conv,
                                   const int64_t output_padding[2], bool bias)
{
    struct module *module = module_new(engine, "ConvTranspose2d", conv_transpose_forward);
    module->conv = conv;
    module->size[0] = output_padding[0];
    module->size[1] = output_padding[1];
    module_parameter(engine, module,
                     (struct shape){4, {in, out / conv.groups, conv.kernel[0], conv.kernel[1]}});
    if (bias) {
        module_parameter(engine, module, (struct shape){1, {out}});
    }
    return module;
}

/* --- one step of an LSTM ------------------------------------------------------------------ */

/* Without states both are the same zeros. */
static int lstm_cell_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                             int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    struct shape shape = {2, {inputs[0]->shape.size[0], module->rnn.hidden}};
    if (count == 2) {
        engine_misuse(engine, "LSTMCell takes an input, or an input and both states");
        return 0;
    }
    struct tensor *h =
        count > 1 ? tensor_keep(inputs[1]) : tensor_new(engine, &shape, inputs[0]->dtype);
    struct tensor *c = tensor_keep(count > 1 ? inputs[2] : h);
    bool done = op_lstm_cell(engine, module->parameters, inputs[0], h, c, results);
    tensor_drop(engine, c);
    tensor_drop(engine, h);
    return done ? 2 : 0;
}

struct module *nn_lstm_cell(struct engine *engine, int64_t in, int64_t hidden)
{
    struct module *module = module_new(engine, "LSTMCell", lstm_cell_forward);
    struct shape bias = {1, {4 * hidden}};
    module->takes = 3;
    module->rnn.hidden = hidden;
    module_parameter(engine, module, (struct shape){2, {4 * hidden, in}});
    module_parameter(engine, module, (struct shape){2, {4 * hidden, hidden}});
    module_parameter(engine, module, bias);
    module_parameter(engine, module, bias);
    return module;
}

/* --- normalisation of each channel of each image ------------------------------------------ */

static int instance_norm_forward(struct engine *engine, struct module *module,
                                 struct tensor **inputs, int count,
                                 struct tensor *results[MODULE_MAX_RESULTS])
{
    char text[128];
    const struct shape *shape = &inputs[0]->shape;
    (void)count;
    if (shape->dims != 4 || shape->size[1] != module->size[0]) {
        engine_misuse(engine, "InstanceNorm2d takes [batch, %lld, height, width], the input is %s",
                      (long long)module->size[0], shape_text(shape, text));
        return 0;
    }
    return one(op_instance_norm(engine, inputs[0], parameter(module, 0), parameter(module, 1)),
               results);
}

struct module *nn_instance_norm(struct engine *engine, int64_t channels, bool affine)
{
    struct module *module = module_new(engine, "InstanceNorm2d", instance_norm_forward);
    module->size[0] = channels;
    for (int i = 0; affine && i < 2; i++) {
        module_parameter(engine, module, (struct shape){1, {channels}});
    }
    return module;
}

/* --- memory formats ----------------------------------------------------------------------- */

/* Parameters are copied one after the other; each takes its new memory before the old one goes. */
static void lay_channels_last(struct engine *engine, struct tensor *parameter, void *context)
{
    (void)context;
    if (parameter->shape.dims != 4 || tensor_format(parameter) == FORMAT_CHANNELS_LAST) {
        return;
    }
    struct tensor *laid =
        tensor_new_as(engine, &parameter->shape, parameter->dtype, FORMAT_CHANNELS_LAST);
    struct storage *old = parameter->storage;
    storage_mark(laid->storage, old->category);
    parameter->storage = storage_keep(laid->storage);
    for (int i = 0; i < laid->shape.dims; i++) {
        parameter->stride[i] = laid->stride[i];
    }
    parameter->transposed = laid->transposed;
    storage_drop(engine, old);
    tensor_drop(engine, laid);
}

void module_to_channels_last(struct engine *engine, struct module *module)
{
    module_parameters(engine, module, lay_channels_last, NULL);
}
