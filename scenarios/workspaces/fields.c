#include "fields.h"

#define SIZE_LIMIT ((int64_t)1 << 31) /* of a dimension: cuDNN takes no more */

static const char *const dtypes[] = {"float32", "float64", "float16", "bfloat16", NULL};
static const char *const layouts[] = {"contiguous", "channels_last", NULL};
static const char *const switches[] = {"off", "on", NULL};
static const char *const kinds[] = {"lstm", "gru", "rnn_tanh", "rnn_relu", NULL};

#define AT(member) offsetof(gmd_workspace_call, member)

const workspace_field workspace_fields[WORKSPACE_FIELDS] = {
    {"dtype", AT(dtype), 1, 0, 0, dtypes, true, true},
    {"in", AT(input), 4, 1, SIZE_LIMIT, NULL, false, true},
    {"weight", AT(weight), 4, 1, SIZE_LIMIT, NULL, false, true},
    {"stride", AT(stride), 2, 1, SIZE_LIMIT, NULL, false, true},
    {"padding", AT(padding), 2, 0, SIZE_LIMIT, NULL, false, true},
    {"dilation", AT(dilation), 2, 1, SIZE_LIMIT, NULL, false, true},
    {"groups", AT(groups), 1, 1, SIZE_LIMIT, NULL, false, true},
    {"layout", AT(channels_last), 1, 0, 0, layouts, false, true},
    {"benchmark", AT(benchmark), 1, 0, 0, switches, false, true},
    {"kind", AT(kind), 1, 0, 0, kinds, true, false},
    {"batch", AT(batch), 1, 1, SIZE_LIMIT, NULL, true, false},
    {"length", AT(length), 1, 1, SIZE_LIMIT, NULL, true, false},
    {"features", AT(features), 1, 1, SIZE_LIMIT, NULL, true, false},
    {"hidden", AT(hidden), 1, 1, SIZE_LIMIT, NULL, true, false},
    {"layers", AT(layers), 1, 1, SIZE_LIMIT, NULL, true, false},
    {"directions", AT(directions), 1, 1, 2, NULL, true, false},
    {"packed", AT(packed), 1, 0, 0, switches, true, false},
    {"training", AT(training), 1, 0, 0, switches, true, false},
};

const workspace_op_name workspace_op_names[GMD_WORKSPACE_OPS] = {
    [GMD_CONV_FORWARD] = {"conv", "forward", false},
    [GMD_CONV_BACKWARD_DATA] = {"conv", "backward_data", false},
    [GMD_CONV_BACKWARD_WEIGHT] = {"conv", "backward_weight", false},
    [GMD_RNN_FORWARD] = {"rnn", "forward", true},
    [GMD_RNN_BACKWARD] = {"rnn", "backward", true},
};
