/* modules_rnn.c - LSTM, GRU and the single step of a GRU. */
#include "gmd_module.h"

static gmd_tensor *given_or_zeros(gmd_engine *engine, const gmd_module *module, gmd_tensor **inputs,
                                  int count, int index)
{
    if (index < count) {
        return gmd_tensor_keep(inputs[index]);
    }
    int dimension = module->rnn.batch_first ? 0 : 1;
    int64_t batch = inputs[0]->shape.dims > dimension ? inputs[0]->shape.size[dimension] : 0;
    gmd_shape shape = {3, {module->rnn.layers * module->rnn.directions, batch, module->rnn.hidden}};
    return gmd_tensor_new(engine, &shape, inputs[0]->dtype);
}

static int rnn_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                       gmd_tensor *results[GMD_MAX_RESULTS])
{
    bool lstm = module->rnn.kind == GMD_LSTM;
    gmd_rnn rnn = module->rnn;
    rnn.flat = module->flat;
    rnn.weights = module->parameters;
    rnn.weight_count = module->parameter_count;
    gmd_tensor *h = given_or_zeros(engine, module, inputs, count, 1);
    gmd_tensor *c = lstm ? given_or_zeros(engine, module, inputs, count, 2) : NULL;
    bool done = gmd_op_rnn(engine, &rnn, inputs[0], h, c, results);
    gmd_tensor_drop(engine, h);
    gmd_tensor_drop(engine, c);
    return !done ? 0 : lstm ? 3 : 2;
}

/* cuDNN wants all weights in one block: each is moved to the device, then copied into the block, of
 * which it becomes a view. */
static void flatten_weights(gmd_engine *engine, gmd_module *module)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < module->parameter_count; i++) {
        bytes += gmd_tensor_bytes(module->parameters[i]);
    }
    module->flat = gmd_storage_new(engine, bytes);
    gmd_storage_is(module->flat, GMD_PARAMETER);
    for (size_t i = 0; i < module->parameter_count; i++) {
        gmd_storage *own = module->parameters[i]->storage;
        module->parameters[i]->storage = gmd_storage_keep(module->flat);
        gmd_storage_drop(engine, own);
    }
}

/* Weights of the input and of the state, then their biases. */
static void add_weights(gmd_engine *engine, gmd_module *module, int64_t gates, int64_t in,
                        int64_t hidden)
{
    gmd_shape bias = {1, {gates * hidden}};
    gmd_module_parameter(engine, module, (gmd_shape){2, {gates * hidden, in}});
    gmd_module_parameter(engine, module, (gmd_shape){2, {gates * hidden, hidden}});
    gmd_module_parameter(engine, module, bias);
    gmd_module_parameter(engine, module, bias);
}

gmd_module *gmd_nn_rnn(gmd_engine *engine, const gmd_rnn *shape, int64_t in)
{
    const char *name = shape->kind == GMD_LSTM ? "LSTM" : "GRU";
    gmd_module *module = gmd_module_new(engine, name, rnn_forward);
    module->takes = shape->kind == GMD_LSTM ? 3 : 2;
    module->rnn = *shape;
    for (int64_t layer = 0; layer < shape->layers; layer++) {
        int64_t features = layer == 0 ? in : shape->hidden * shape->directions;
        for (int64_t direction = 0; direction < shape->directions; direction++) {
            add_weights(engine, module, shape->kind == GMD_LSTM ? 4 : 3, features, shape->hidden);
        }
    }
    flatten_weights(engine, module);
    return module;
}

static int gru_cell_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                            gmd_tensor *results[GMD_MAX_RESULTS])
{
    if (count < 2) {
        gmd_misuse(engine, "GRUCell takes an input and a state");
        return 0;
    }
    results[0] = gmd_op_gru_cell(engine, module->parameters, inputs[0], inputs[1]);
    return results[0] ? 1 : 0;
}

gmd_module *gmd_nn_gru_cell(gmd_engine *engine, int64_t in, int64_t hidden)
{
    gmd_module *module = gmd_module_new(engine, "GRUCell", gru_cell_forward);
    module->takes = 2;
    add_weights(engine, module, 3, in, hidden);
    return module;
}
