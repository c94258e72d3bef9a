#include "rnn_model.h"

#define PRODUCT_ROOM ((uint64_t)8 << 20)
#define WIDE         256 /* hidden units from which on the rules were found to hold */

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

/* The workspace holds the gradients of one layer's gates and output, copies of the weights and of
 * the input, and for each layer and direction the states of some steps and room for the products;
 * with two directions their outputs and states are separate. A GRU copies its input once more where
 * it has one layer, or several layers and two directions. Packed sequences in two directions need a
 * copy of the output and none of the input. The rules are fitted to the "ops" recording; cuDNN does
 * not document its reasons. */
static uint64_t estimated_workspace(const struct rnn_call *call)
{
    bool lstm = call->lstm, both = call->directions == 2, packed = call->packed;
    uint64_t networks = (uint64_t)(call->layers * call->directions);
    uint64_t states = networks * (uint64_t)(call->batch * call->hidden) * dtype_bytes(call->dtype);
    uint64_t input =
        (uint64_t)(call->batch * call->length * call->features) * dtype_bytes(call->dtype);
    uint64_t apart = both && !packed ? 2 : 0;
    uint64_t outputs = (lstm ? 5 : 4) + apart + packed;
    uint64_t inputs = !lstm && (call->layers > 1) == both ? 2 : 1;
    return outputs * call->step_bytes + call->matrix_bytes + (packed ? 0 : inputs * input) +
           ((lstm ? 10 : 5) + apart) * states + networks * PRODUCT_ROOM + 512;
}

workspace_estimate rnn_model_workspace(const struct rnn_call *call)
{
    uint64_t bytes = estimated_workspace(call);
    return (workspace_estimate){bytes, call->step_bytes + call->matrix_bytes,
                                call->hidden < WIDE ? MODEL_RNN_NARROW : MODEL_RNN, bytes, bytes};
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
