/* modules_rnn.c - LSTM, GRU and the single step of a GRU. */
#include "gmd_module.h"

static struct tensor *given_or_zeros(struct engine *engine, const struct module *module,
                                     struct tensor **inputs, int count, int index)
{
    if (index < count) {
        return tensor_keep(inputs[index]);
    }
    int dimension = module->rnn.batch_first ? 0 : 1;
    int64_t batch = inputs[0]->shape.dims > dimension ? inputs[0]->shape.size[dimension] : 0;
    struct shape shape = {3,
                          {module->rnn.layers * module->rnn.directions, batch, module->rnn.hidden}};
    return tensor_new(engine, &shape, inputs[0]->dtype);
}

static int rnn_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                       int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    bool lstm = module->rnn.kind == RNN_LSTM;
    struct rnn rnn = module->rnn;
    rnn.dropout = module->training ? module->rnn.dropout : 0;
    rnn.flat = module->flat;
    rnn.weights = module->parameters;
    rnn.weight_count = module->parameter_count;
    struct tensor *h = given_or_zeros(engine, module, inputs, count, 1);
    struct tensor *c = lstm ? given_or_zeros(engine, module, inputs, count, 2) : NULL;
    bool done = op_rnn(engine, &rnn, inputs[0], h, c, results);
    tensor_drop(engine, h);
    tensor_drop(engine, c);
    return !done ? 0 : lstm ? 3 : 2;
}

/* cuDNN wants all weights in one block: each is moved to the device, then copied into the block, of
 * which it becomes a view. */
static void flatten_weights(struct engine *engine, struct module *module)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < module->parameter_count; i++) {
        bytes += tensor_bytes(module->parameters[i]);
    }
    module->flat = storage_new(engine, bytes);
    storage_mark(module->flat, GMD_PARAMETER);
    for (size_t i = 0; i < module->parameter_count; i++) {
        struct storage *own = module->parameters[i]->storage;
        module->parameters[i]->storage = storage_keep(module->flat);
        storage_drop(engine, own);
    }
}

/* Weights of the input and of the state, then their biases. */
static void add_weights(struct engine *engine, struct module *module, int64_t gates, int64_t in,
                        int64_t hidden)
{
    struct shape bias = {1, {gates * hidden}};
    module_parameter(engine, module, (struct shape){2, {gates * hidden, in}});
    module_parameter(engine, module, (struct shape){2, {gates * hidden, hidden}});
    module_parameter(engine, module, bias);
    module_parameter(engine, module, bias);
}

struct module *nn_rnn(struct engine *engine, const struct rnn *shape, int64_t in)
{
    const char *name = shape->kind == RNN_LSTM ? "LSTM" : "GRU";
    struct module *module = module_new(engine, name, rnn_forward);
    module->takes = shape->kind == RNN_LSTM ? 3 : 2;
    module->rnn = *shape;
    for (int64_t layer = 0; layer < shape->layers; layer++) {
        int64_t features = layer == 0 ? in : shape->hidden * shape->directions;
        for (int64_t direction = 0; direction < shape->directions; direction++) {
            add_weights(engine, module, shape->kind == RNN_LSTM ? 4 : 3, features, shape->hidden);
        }
    }
    flatten_weights(engine, module);
    return module;
}

static int gru_cell_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                            int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    if (count < 2) {
        engine_misuse(engine, "GRUCell takes an input and a state");
        return 0;
    }
    results[0] = op_gru_cell(engine, module->parameters, inputs[0], inputs[1]);
    return results[0] ? 1 : 0;
}

struct module *nn_gru_cell(struct engine *engine, int64_t in, int64_t hidden)
{
    struct module *module = module_new(engine, "GRUCell", gru_cell_forward);
    module->takes = 2;
    add_weights(engine, module, 3, in, hidden);
    return module;
}
