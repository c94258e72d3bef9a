#include "rnn_model.h"

#include "gmd_min.h"

#define PRODUCT_ROOM ((uint64_t)8 << 20)

/* What cuDNN 9 took (shared/traces/hidden_*, seq2seq, and the "ops" recording): for each element of
 * an output of one layer and direction the gates and states that the way back needs, and the
 * outputs between layers. */
static uint64_t estimated_reserve(const struct rnn_call *call)
{
    uint64_t layers = (uint64_t)call->layers;
    return call->step_bytes * ((call->lstm ? 6 : 7) * layers - 1) + 256;
}

/* A dropout between layers keeps a bit for each element of their outputs ("operations", H200). */
static uint64_t mask_bytes(const struct rnn_call *call)
{
    uint64_t between = (uint64_t)(call->layers - 1);
    uint64_t elements = call->step_bytes / dtype_bytes(call->dtype);
    return call->drops ? (elements * between + 7) / 8 : 0;
}

typedef struct terms {            /* bytes of one direction */
    uint64_t step, input, states; /* outputs of a layer, the input, states of a layer */
} terms;

static terms terms_of(const struct rnn_call *call)
{
    uint64_t rows = (uint64_t)(call->batch * call->length), bytes = dtype_bytes(call->dtype);
    return (terms){rows * (uint64_t)call->hidden * bytes, rows * (uint64_t)call->features * bytes,
                   (uint64_t)(call->batch * call->hidden) * bytes};
}

/* Networks so narrow run in kernels that keep all steps: backwards up to 128 hidden units, forwards
 * up to 192; in 16 bits an LSTM of one layer and direction always does by 64. */
static bool is_narrow(const struct rnn_call *call)
{
    int64_t most = call->op == GMD_RNN_BACKWARD ? 128 : 192;
    bool by_64 = call->lstm && dtype_bytes(call->dtype) == 2 && call->layers == 1 &&
                 call->directions == 1 && call->hidden % 64 == 0;
    return call->hidden <= most || by_64;
}

static uint64_t narrow_lstm(const struct rnn_call *call, terms of)
{
    bool both = call->directions == 2, deep = call->layers > 1;
    uint64_t wide_input =
        both ? (deep ? 6 : 4) * of.step + 5 * of.input : (deep ? 11 : 10) * of.step + 2 * of.input;
    return gmd_max(16 * of.step - 2 * of.states, wide_input + 2 * of.states);
}

static uint64_t narrow_gru(const struct rnn_call *call, terms of)
{
    uint64_t beyond = of.input > of.step ? of.input - of.step : 0;
    if (!call->training) {
        return 12 * of.step - of.states;
    }
    if (call->directions == 2) {
        return call->layers > 1 ? 14 * of.step + 4 * beyond : 12 * of.step + of.input + 4 * beyond;
    }
    return call->layers > 1 ? 15 * of.step + of.input + beyond + 2 * of.states
                            : 14 * of.step + beyond + of.states;
}

/* The workspace holds the gradients of one layer's gates and output, copies of the weights and of
 * the input, and for each layer and direction the states of some steps and room for the products;
 * with two directions their outputs and states are separate. A GRU that trains copies its input
 * once more where it has one layer, or several layers and two directions. Packed sequences in two
 * directions need a copy of the output and none of the input. The rules are fitted to the calls of
 * integrations/workspaces/list_shapes.py that are not held; cuDNN does not document its reasons. */
static uint64_t estimated_workspace(const struct rnn_call *call)
{
    bool lstm = call->lstm, both = call->directions == 2, packed = call->packed;
    const terms of = terms_of(call);
    uint64_t networks = (uint64_t)(call->layers * call->directions);
    uint64_t apart = both && !packed ? 2 : 0;
    uint64_t outputs = (lstm ? 5 : 4) + apart + packed;
    uint64_t inputs = !lstm && call->training && (call->layers > 1) == both ? 2 : 1;
    uint64_t narrow = !is_narrow(call) ? 0 : lstm ? narrow_lstm(call, of) : narrow_gru(call, of);
    return outputs * call->step_bytes + call->matrix_bytes + (packed ? 0 : inputs * of.input) +
           ((lstm ? 10 : 5) + apart) * networks * of.states + networks * PRODUCT_ROOM + 512 +
           narrow;
}

workspace_estimate rnn_model_workspace(const struct rnn_call *call)
{
    uint64_t bytes = estimated_workspace(call);
    uint64_t tensors = gmd_max(call->step_bytes + call->matrix_bytes, ESTIMATE_LEAST_TENSORS);
    return (workspace_estimate){bytes, tensors, is_narrow(call) ? MODEL_RNN_NARROW : MODEL_RNN,
                                bytes, bytes};
}

static const gmd_workspace *recorded(struct engine *engine, const struct rnn_call *call)
{
    const gmd_workspace_call key = {
        .op = (int64_t)call->op,
        .dtype = workspace_dtype(call->dtype),
        .kind = call->lstm ? GMD_WS_LSTM : GMD_WS_GRU,
        .batch = call->batch,
        .length = call->length,
        .features = call->features,
        .hidden = call->hidden,
        .layers = call->layers,
        .directions = call->directions,
        .packed = call->packed,
        .training = call->training,
    };
    return workspace_recorded(engine, &key);
}

uint64_t rnn_workspace_bytes(struct engine *engine, const struct rnn_call *call)
{
    const gmd_workspace *known = recorded(engine, call);
    return workspace_count(engine, known ? &known->bytes : NULL, rnn_model_workspace(call));
}

uint64_t rnn_reserve_bytes(struct engine *engine, const struct rnn_call *call)
{
    const gmd_workspace *known = recorded(engine, call);
    uint64_t reserve = known && known->has_reserve ? known->reserve : estimated_reserve(call);
    return reserve + mask_bytes(call);
}
